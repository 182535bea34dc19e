package guard

import (
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Slots and marks of work in this process. They end with it, so they need no lease; what was done is kept.

// slotSet is the slots of one key that are held.
type slotSet struct{ tokens []uint64 }

func (l *ledger) acquire(r SlotRequest) (Slot, error) {
	k := id{r.Limit, r.Key}
	held := l.slots[k]
	switch {
	case held == nil && len(l.slots) >= l.maxKeys:
		return Slot{}, driver.NewError(driver.ErrFull, fmt.Sprintf("work of %d keys is under way already", l.maxKeys), "raise MaxKeys", nil)
	case held == nil:
		held = l.newSlotSet()
		l.slots[k] = held
	case r.Token != 0 && slices.Contains(held.tokens, r.Token):
		return Slot{Held: true, Token: r.Token}, nil
	case len(held.tokens) >= r.Max:
		return Slot{}, nil
	}
	l.token++
	held.tokens = append(held.tokens, l.token)
	return Slot{Held: true, Token: l.token}, nil
}

func (l *ledger) release(r SlotRequest) {
	k := id{r.Limit, r.Key}
	held := l.slots[k]
	if held == nil {
		return
	}
	if i := slices.Index(held.tokens, r.Token); i >= 0 {
		last := len(held.tokens) - 1
		held.tokens[i] = held.tokens[last]
		held.tokens = held.tokens[:last]
	}
	if len(held.tokens) == 0 {
		delete(l.slots, k)
		if len(l.spare) < 1024 {
			l.spare = append(l.spare, held)
		}
	}
}

func (l *ledger) newSlotSet() *slotSet {
	n := len(l.spare)
	if n == 0 {
		return new(slotSet)
	}
	s := l.spare[n-1]
	l.spare = l.spare[:n-1]
	return s
}

// mark is the work of one id: done until a time, or under way by a token.
type mark struct {
	token uint64 // zero: done
	until time.Time
}

func (m mark) over(now time.Time) bool { return m.token == 0 && !now.Before(m.until) }

// fade is when a mark may be forgotten.
type fade struct {
	id    id
	until time.Time
}

// fade forgets marks whose time is over. Those of longer windows may hold up others for a while.
func (l *ledger) fade(now time.Time) {
	for len(l.fades) > 0 && !now.Before(l.fades[0].until) {
		if m, ok := l.marks[l.fades[0].id]; ok && m.over(now) {
			delete(l.marks, l.fades[0].id)
		}
		l.fades = l.fades[1:]
	}
}

func (l *ledger) begin(now time.Time, r MarkRequest) (Mark, error) {
	l.fade(now)
	k := id{r.Name, r.ID}
	m, known := l.marks[k]
	switch {
	case !known || m.over(now):
	case m.token == 0:
		return Mark{Done: true}, nil
	case m.token == r.Token:
		return Mark{Ours: true, Token: r.Token}, nil
	default:
		return Mark{}, nil
	}
	if !known && len(l.marks) >= l.maxKeys {
		return Mark{}, driver.NewError(driver.ErrFull, fmt.Sprintf("%d marks are remembered already", l.maxKeys),
			"raise MaxKeys, or make the window shorter", nil)
	}
	l.token++
	l.marks[k] = mark{token: l.token}
	return Mark{Ours: true, Token: l.token}, nil
}

func (l *ledger) complete(now time.Time, r MarkRequest) {
	until := now.Add(r.Window)
	k := id{r.Name, r.ID}
	l.marks[k] = mark{until: until}
	l.fades = append(l.fades, fade{k, until})
	if l.keep != nil {
		l.keep(entry{Name: r.Name, ID: r.ID, Done: until})
	}
}

func (l *ledger) abort(r MarkRequest) {
	k := id{r.Name, r.ID}
	if m, ok := l.marks[k]; ok && m.token != 0 && m.token == r.Token {
		delete(l.marks, k)
	}
}

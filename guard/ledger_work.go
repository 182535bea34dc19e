package guard

import (
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Slots and marks of work in this process. They end with it, so they need no lease; what was done is kept.

func (l *ledger) acquire(r SlotRequest) (Slot, error) {
	k := id{r.Limit, r.Key}
	held := l.slots[k]
	if _, ok := held[r.Token]; ok && r.Token != 0 {
		return Slot{Held: true, Token: r.Token}, nil
	}
	if len(held) >= r.Max {
		return Slot{}, nil
	}
	if held == nil {
		if len(l.slots) >= l.maxKeys {
			return Slot{}, driver.NewError(driver.ErrFull, fmt.Sprintf("work of %d keys is under way already", l.maxKeys), "raise MaxKeys", nil)
		}
		held = make(map[uint64]struct{}, 1)
		l.slots[k] = held
	}
	l.token++
	held[l.token] = struct{}{}
	return Slot{Held: true, Token: l.token}, nil
}

func (l *ledger) release(r SlotRequest) {
	k := id{r.Limit, r.Key}
	held := l.slots[k]
	delete(held, r.Token)
	if len(held) == 0 {
		delete(l.slots, k)
	}
}

// mark is the work of one id: done until a time, or under way by a token.
type mark struct {
	token uint64 // zero: done
	until time.Time
}

func (m mark) over(now time.Time) bool { return m.token == 0 && !now.Before(m.until) }

func (l *ledger) begin(now time.Time, r MarkRequest) (Mark, error) {
	l.tidy(now)
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
		l.sweep(now, len(l.marks))
		if len(l.marks) >= l.maxKeys {
			return Mark{}, driver.NewError(driver.ErrFull, fmt.Sprintf("%d marks are remembered already", l.maxKeys),
				"raise MaxKeys, or make the window shorter", nil)
		}
	}
	l.token++
	l.marks[k] = mark{token: l.token}
	return Mark{Ours: true, Token: l.token}, nil
}

func (l *ledger) complete(now time.Time, r MarkRequest) {
	until := now.Add(r.Window)
	l.marks[id{r.Name, r.ID}] = mark{until: until}
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

package guard

import (
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard/store"
)

// Slots of work in this process. They end with it, so they need no lease.

// slotSet is the slots of one key that are held.
type slotSet struct{ tokens []uint64 }

func (l *ledger) acquire(r store.SlotRequest) (store.Slot, error) {
	k := id{r.Limit, r.Key}
	held := l.slots[k]
	switch {
	case held == nil && len(l.slots) >= l.maxKeys:
		return store.Slot{}, driver.NewError(driver.ErrFull, fmt.Sprintf("work of %d keys is under way already", l.maxKeys),
			"raise MaxKeys", nil)
	case held == nil:
		held = l.newSlotSet()
		l.slots[k] = held
	case r.Token != 0 && slices.Contains(held.tokens, r.Token):
		return store.Slot{Held: true, Token: r.Token}, nil
	case len(held.tokens) >= r.Max:
		return store.Slot{}, nil
	}
	l.token++
	held.tokens = append(held.tokens, l.token)
	return store.Slot{Held: true, Token: l.token}, nil
}

func (l *ledger) release(r store.SlotRequest) {
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

package guard

import (
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard/store"
)

// slots of work in this process. They end with it, so they need no lease.
type slots struct {
	most  int // keys
	of    map[id]*slotSet
	idle  int // of them nobody holds a slot
	token uint64
}

// slotSet is the slots of one key that are held.
type slotSet struct{ tokens []uint64 }

// maxIdleSlots is of how many keys without work the place is kept: to make it anew for each message costs more than all
// the rest of a slot.
const maxIdleSlots = 1024

func (s *slots) acquire(r store.SlotRequest) (store.Slot, error) {
	k := id{r.Limit, r.Key}
	set := s.of[k]
	switch {
	case set == nil && len(s.of)-s.idle >= s.most:
		return store.Slot{}, driver.NewError(driver.ErrFull, fmt.Sprintf("work of %d keys is under way already", s.most),
			"raise MaxKeys", nil)
	case set == nil:
		set = new(slotSet)
		s.of[k] = set
	case len(set.tokens) == 0:
		s.idle--
	case r.Token != 0 && slices.Contains(set.tokens, r.Token):
		return store.Slot{Held: true, Token: r.Token}, nil
	case len(set.tokens) >= r.Max:
		return store.Slot{}, nil
	}
	s.token++
	set.tokens = append(set.tokens, s.token)
	return store.Slot{Held: true, Token: s.token}, nil
}

func (s *slots) release(r store.SlotRequest) {
	k := id{r.Limit, r.Key}
	set := s.of[k]
	if set == nil {
		return
	}
	i := slices.Index(set.tokens, r.Token)
	if i < 0 {
		return
	}
	last := len(set.tokens) - 1
	set.tokens[i] = set.tokens[last]
	set.tokens = set.tokens[:last]
	if last > 0 {
		return
	}
	if s.idle++; s.idle > maxIdleSlots {
		s.forgetIdle()
	}
}

// forgetIdle forgets the keys without work: those that come again soon are few among so many.
func (s *slots) forgetIdle() {
	for k, set := range s.of {
		if len(set.tokens) == 0 {
			delete(s.of, k)
		}
	}
	s.idle = 0
}

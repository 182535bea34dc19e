package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// auditStore compares every record of the store with memory. The topic goes on meanwhile, so what differs is looked
// at again, alone, before it counts.
func (t *topic) auditStore(ctx context.Context, fix bool, report *driver.AuditReport) error {
	a := &storeAudit{t: t, cold: map[uint64]int{}}
	t.mu.Lock()
	before := slices.Clone(t.cold.stretches)
	t.mu.Unlock()
	if err := a.scan(ctx, 0, math.MaxUint64, a.look); err != nil {
		return err
	}
	a.look(math.MaxUint64, "") // what lies behind all that the store has
	report.Problems = append(report.Problems, a.compareCold(before)...)
	for _, seq := range a.suspects {
		known, stored, err := a.compare(ctx, seq)
		if err != nil {
			return err
		}
		if known != stored {
			report.Problems = append(report.Problems, driver.Problem{Kind: "store",
				Text:  fmt.Sprintf("message 0-%d: memory says %q, the store %q", seq, known, stored),
				Fixed: fix && a.repair(ctx, seq, stored != "")})
		}
	}
	return nil
}

type storeAudit struct {
	t        *topic
	at       uint64         // up to where memory and the store were looked at
	suspects []uint64       // of which they say different things at first sight, in order
	cold     map[uint64]int // how many messages of each stretch the store has
	state    storedState    // scratch
}

// scan tells where each message in a part of the log is, first without and then with its state if there is one. It
// reads all records, which also checks their checksums.
func (a *storeAudit) scan(ctx context.Context, first, last uint64, use func(seq uint64, text string)) error {
	number := a.t.journal.number
	from := appendNumberKey(nil, number, kindMessage, first)
	to := append(appendStateKey(nil, number, last), 0)
	groups, n := a.t.groupsNow(), 0
	var newest uint64
	err := a.t.e.o.Store.Scan(from, to, func(key, value []byte) error {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		seq, state, _ := numberOf(key)
		if !state {
			newest = seq
			head, _, err := splitMessage(value)
			if err != nil {
				use(seq, "it is damaged: "+err.Error())
				return nil
			}
			a.state.unchanged(head, groups)
			use(seq, a.state.summary())
		} else if err := a.state.read(value, moment{}); err != nil || seq != newest {
			use(seq, "its state is damaged")
		} else {
			use(seq, a.state.summary())
		}
		return nil
	})
	if errors.Is(err, driver.ErrClosed) {
		return refusal.Closed()
	}
	if err != nil && ctx.Err() == nil {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("the records of topic %q cannot be read", a.t.name),
			"restore the directory from a backup", err)
	}
	return err
}

// look notes whether memory says the same of a message, and what it has before that. Of what is cold it knows how many
// there are. What comes last of a message counts.
func (a *storeAudit) look(seq uint64, text string) {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	for missing := range a.t.log.after(a.at) {
		if missing >= seq {
			break
		}
		a.suspects = append(a.suspects, missing)
	}
	if n := len(a.suspects); n > 0 && a.suspects[n-1] == seq {
		a.suspects = a.suspects[:n-1]
	}
	a.at = seq
	e := a.t.log.get(seq)
	if i := a.t.cold.find(seq); i >= 0 && e == nil {
		a.cold[a.t.cold.stretches[i].first]++
	} else if e.summary() != text {
		a.suspects = append(a.suspects, seq)
	}
}

// summary tells where a message is.
func (s *storedState) summary() string {
	var items []string
	for _, it := range s.items {
		items = append(items, fmt.Sprintf("group %d has it %s at %d, failed %d, lost %d (%v)", it.group, it.state, it.Place,
			it.failures, it.lost, it.is(leaseLost)))
	}
	slices.Sort(items)
	return fmt.Sprintf("%d at %d: %s", s.state, s.fan, strings.Join(items, ", "))
}

// groupsNow returns the groups as they are now.
func (t *topic) groupsNow() []*group {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.groups)
}

// summary tells where a message is, as memory has it. Empty: nowhere.
func (e *entry) summary() string {
	if e == nil {
		return ""
	}
	var s storedState
	s.of(e, moment{})
	return s.summary()
}

// compare returns what memory and the store say about a message that holds still, or twice nothing.
func (a *storeAudit) compare(ctx context.Context, seq uint64) (known, stored string, err error) {
	for range 10 {
		known, stored = a.remembered(seq), ""
		if err = a.t.e.o.Store.Append(nil, false).Wait(ctx, false); err == nil {
			err = a.scan(ctx, seq, seq, func(_ uint64, text string) { stored = text })
		}
		if err != nil || a.remembered(seq) == known {
			return known, stored, err
		}
	}
	return "", "", nil // it never held still
}

func (a *storeAudit) remembered(seq uint64) string {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	return a.t.log.get(seq).summary()
}

// repair stores what memory knows. A message of which memory knows nothing is left alone: opening the store finds it.
func (a *storeAudit) repair(ctx context.Context, seq uint64, stored bool) bool {
	now := a.t.e.now()
	a.t.mu.Lock()
	e := a.t.log.get(seq)
	if e == nil || e.is(onDisk) && !stored || a.t.ended {
		a.t.mu.Unlock()
		return false
	}
	if !e.is(onDisk) {
		e.flags &^= saved
	}
	a.t.touch(e)
	r := a.t.unlock(now)
	return r != nil && r.Wait(ctx, true) == nil
}

// What is cold is not compared one by one: memory knows how many there are.

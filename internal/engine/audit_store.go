package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// auditStore compares every record of the store with memory. The topic goes on meanwhile, so what differs is looked
// at again, alone, before it counts.
func (t *topic) auditStore(ctx context.Context, fix bool, report *driver.AuditReport) error {
	a := &storeAudit{t: t, stored: map[uint64]string{}, cold: map[uint64]int{}}
	before := a.stretches()
	if err := a.scan(ctx); err != nil {
		return err
	}
	report.Problems = append(report.Problems, a.compareCold(before)...)
	for _, seq := range a.suspects() {
		text, err := a.compare(ctx, seq)
		if err != nil {
			return err
		}
		if text == "" {
			continue
		}
		p := driver.Problem{Kind: "store", Text: fmt.Sprintf("message 0-%d: %s", seq, text)}
		p.Fixed = fix && a.repair(ctx, seq)
		report.Problems = append(report.Problems, p)
	}
	return nil
}

type storeAudit struct {
	t      *topic
	stored map[uint64]string // what the store says of each message that is in memory, or should be
	cold   map[uint64]int    // how many messages of each stretch the store has
	state  storedState       // scratch
}

// scan reads all records, which also checks their checksums.
func (a *storeAudit) scan(ctx context.Context) error {
	from, to := rangeOf(a.t.journal.number, kindMessage)
	n := 0
	var last uint64
	err := a.t.e.o.Store.Scan(from, to, func(key, value []byte) error {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		seq, state, _ := numberOf(key)
		if !state {
			last = seq
			if !a.isCold(seq) {
				a.stored[seq] = a.readMessage(value)
			}
			return nil
		}
		if err := a.state.read(value, moment{}); err != nil || seq != last {
			a.stored[seq] = "its state is damaged"
			return nil
		}
		a.stored[seq] = a.state.summary()
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

// readMessage tells where a message is of which no state is stored.
func (a *storeAudit) readMessage(value []byte) string {
	head, _, err := splitMessage(value)
	if err != nil {
		return "it is damaged: " + err.Error()
	}
	a.state.unchanged(head, a.t.groupsNow())
	return a.state.summary()
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

// suspects returns the messages of which memory and the store say different things at first sight.
func (a *storeAudit) suspects() []uint64 {
	var seqs []uint64
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	for seq, text := range a.stored {
		if a.t.log.get(seq).summary() != text {
			seqs = append(seqs, seq)
		}
	}
	a.t.log.after(0, func(seq uint64, e *entry) bool {
		if _, ok := a.stored[seq]; !ok {
			seqs = append(seqs, seq)
		}
		return true
	})
	slices.Sort(seqs)
	return seqs
}

// compare says how memory and the store differ about a message that holds still, or nothing.
func (a *storeAudit) compare(ctx context.Context, seq uint64) (string, error) {
	for range 10 {
		before := a.remembered(seq)
		if err := a.t.e.o.Store.Append(nil, false).Wait(ctx, false); err != nil {
			return "", err
		}
		stored, err := a.read(seq)
		if err != nil {
			return "", err
		}
		if a.remembered(seq) != before {
			continue // it moved meanwhile
		}
		if before == stored {
			return "", nil
		}
		return fmt.Sprintf("memory says %q, the store %q", before, stored), nil
	}
	return "", nil
}

func (a *storeAudit) remembered(seq uint64) string {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	return a.t.log.get(seq).summary()
}

func (a *storeAudit) read(seq uint64) (text string, err error) {
	n := a.t.journal.number
	keys := [][]byte{appendNumberKey(nil, n, kindMessage, seq), appendStateKey(nil, n, seq)}
	var values [2][]byte
	if err := a.t.e.o.Store.Read(keys, func(i int, v []byte) { values[i] = slices.Clone(v) }); err != nil ||
		values[0] == nil {
		return "", err
	}
	if values[1] == nil {
		return a.readMessage(values[0]), nil
	}
	if err := a.state.read(values[1], moment{}); err != nil {
		return "its state is damaged", nil //nolint:nilerr // that is what differs
	}
	return a.state.summary(), nil
}

// repair stores what memory knows. A message of which memory knows nothing is left alone: opening the store finds it.
func (a *storeAudit) repair(ctx context.Context, seq uint64) bool {
	now := a.t.e.now()
	a.t.mu.Lock()
	e := a.t.log.get(seq)
	if e == nil || e.is(onDisk) && a.stored[seq] == "" || a.t.ended {
		a.t.mu.Unlock()
		return false
	}
	if !e.is(onDisk) {
		e.flags &^= saved
	}
	a.t.touch(e)
	err := errors.New("not stored")
	if r := a.t.unlock(now); r != nil {
		err = r.Wait(ctx, true)
	}
	return err == nil
}

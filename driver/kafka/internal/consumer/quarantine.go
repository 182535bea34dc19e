package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// invalid is a record that cannot be decoded.
type invalid struct {
	p       *partition
	r       *kgo.Record
	problem error
}

// quarantine stores broken records whole among the invalid of the topic, then their offsets are done. The key is the
// place they were found at, so that several groups store them once.
func (m *member) quarantine(ctx context.Context) {
	m.mu.Lock()
	bad := m.bad
	m.bad = nil
	m.mu.Unlock()
	for _, b := range bad {
		if err := m.d.cluster.Produce(ctx, m.d.registry.InvalidRecord(m.topic.Name, b.r, b.problem)); err != nil &&
			!errors.Is(err, driver.ErrTooLarge) {
			continue // not done: it comes again with the next owner
		}
		m.mu.Lock()
		b.p.done.Set(b.r.Offset)
		b.p.dirty = true
		m.mu.Unlock()
	}
}

// deadRecord is the dead letter of an item.
func (m *member) deadRecord(it *Item, failed *driver.Failure, instance string) *kgo.Record {
	last := driver.Failure{At: time.Now().UTC()}
	if failed != nil {
		last = *failed
	}
	dl := &driver.DeadLetter{
		Message: it.Msg, History: it.history, Attempts: it.attempts, Deliveries: it.lost + 1, Rounds: it.rounds,
		Origin: driver.Origin{Topic: m.topic.Name, Group: m.group, Ref: it.Ref, Instance: instance},
	}
	if instance != "" { // otherwise nobody held it: it expired, which is no attempt
		dl.History, dl.Attempts = driver.AppendFailure(it.history, last), it.attempts+1
		last = dl.History[len(dl.History)-1]
	}
	dl.Bury(last)
	return m.d.registry.DeadRecord(dl)
}

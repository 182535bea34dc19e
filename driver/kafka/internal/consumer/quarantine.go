package consumer

import (
	"context"
	"errors"

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
func (m *member) quarantine(ctx context.Context, bad []invalid) {
	for _, b := range bad {
		if err := m.d.cluster.Produce(ctx, m.d.registry.InvalidRecord(m.topic.Name, b.r, b.problem)); err != nil && !errors.Is(err, driver.ErrTooLarge) {
			continue // not done: it comes again with the next owner
		}
		m.mu.Lock()
		b.p.done.Set(b.r.Offset)
		b.p.dirty = true
		m.mu.Unlock()
	}
}

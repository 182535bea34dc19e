package publisher

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// within says whether the bounds of topics refuse what a call publishes.
type within bool

// Whether bounds refuse.
const (
	Bounds    within = true
	AnyNumber within = false // follow-ups, and what an operator mends
)

// withinBound refuses a message when the topic is full. An estimate: others publish meanwhile.
func (d *Publisher) withinBound(ctx context.Context, x *Call, m *driver.Message) error {
	t, c := x.topic, x.row.Config
	if c.MaxMessages == 0 && c.MaxBytes == 0 || x.within == AnyNumber {
		return nil
	}
	if t.Bound.Old(c) {
		if err := d.recount(ctx, t, c); err != nil {
			return notStored(err)
		}
	}
	b := &t.Bound
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if b.Full(c) {
		return driver.NewError(driver.ErrFull, fmt.Sprintf("topic %q holds about %d messages and %d bytes, of %d and %d "+
			"(0: no bound)", t.Name, b.Messages, b.Bytes, c.MaxMessages, c.MaxBytes),
			"wait for consumers, or raise the bounds of the topic: 'ferry topic alter'", nil)
	}
	if b.Size == 0 { // until there is something to look at
		b.Size = int64(len(m.Body) + len(m.Key))
	}
	b.Messages++
	b.Bytes += int64(len(m.Body) + len(m.Key))
	return nil
}

// recount estimates what a topic holds now, one caller at a time.
func (d *Publisher) recount(ctx context.Context, t *registry.TopicState, c driver.TopicConfig) error {
	release, err := d.cluster.Single(ctx, "bound/"+t.Name)
	if err != nil {
		return err
	}
	defer release()
	if !t.Bound.Old(c) { // somebody else has, meanwhile
		return nil
	}
	at := time.Now()
	st, err := d.Stats(ctx, t.Name)
	if err != nil {
		return err
	}
	t.Bound.Mu.Lock()
	defer t.Bound.Mu.Unlock()
	t.Bound.At, t.Bound.Messages, t.Bound.Bytes = at, st.Messages, st.Bytes
	return nil
}

// AverageSize is how many bytes a message of a topic has, by the newest of some partitions.
func (d *Publisher) AverageSize(ctx context.Context, t *registry.TopicState, ends map[int32]int64) (int64, error) {
	t.Bound.Mu.Lock()
	size, fresh := t.Bound.Size, time.Since(t.Bound.SizedAt) < registry.SizeAge
	t.Bound.Mu.Unlock()
	if fresh && size > 0 {
		return size, nil
	}
	spans := map[int32][2]int64{}
	for id, end := range ends {
		if len(spans) < registry.SampledPartitions && end > 0 {
			spans[id] = [2]int64{max(0, end-registry.Sampled), end}
		}
	}
	var n, sum int64
	err := d.cluster.ReadSpans(ctx, t.Main, spans, func(r *kgo.Record) {
		n++
		sum += int64(len(r.Value) + len(r.Key))
	})
	if err != nil || n == 0 {
		return size, err
	}
	t.Bound.Mu.Lock()
	defer t.Bound.Mu.Unlock()
	t.Bound.Size, t.Bound.SizedAt = sum/n, time.Now()
	return t.Bound.Size, nil
}

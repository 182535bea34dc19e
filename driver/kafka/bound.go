package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// Times of bounds: how long an estimate of what a topic holds is used, also when it says full, and how long the size of a message.
const (
	boundAge = time.Second
	fullAge  = 200 * time.Millisecond
	sizeAge  = 10 * time.Second

	sampled           = 50 // newest messages of a partition whose size is looked at
	sampledPartitions = 4
)

// bound is an estimate of what a topic holds: what was counted a moment ago, and what this process has published since.
type bound struct {
	mu              sync.Mutex
	at              time.Time
	messages, bytes int64
	sizedAt         time.Time
	size            int64 // of a message, on average
}

type boundless struct{}

// withoutBound marks a publish that no bound refuses.
func withoutBound(ctx context.Context) context.Context {
	return context.WithValue(ctx, boundless{}, true)
}

// withinBound refuses a message when the topic is full. An estimate: others publish meanwhile.
func (d *Driver) withinBound(ctx context.Context, t *topicState, c driver.TopicConfig, m *driver.Message) error {
	if c.MaxMessages == 0 && c.MaxBytes == 0 || ctx.Value(boundless{}) != nil {
		return nil
	}
	if t.bound.old(c) {
		if err := d.recount(ctx, t, c); err != nil {
			return d.notStored(err)
		}
	}
	b := &t.bound
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full(c) {
		return driver.NewError(driver.ErrFull, fmt.Sprintf("topic %q holds about %d messages and %d bytes, of %d and %d (0: no bound)", t.name, b.messages, b.bytes, c.MaxMessages, c.MaxBytes),
			"wait for consumers, or raise the bounds of the topic: 'ferry topic alter'", nil)
	}
	if b.size == 0 { // until there is something to look at
		b.size = int64(len(m.Body) + len(m.Key))
	}
	b.messages++
	b.bytes += int64(len(m.Body) + len(m.Key))
	return nil
}

func (b *bound) full(c driver.TopicConfig) bool {
	return c.MaxMessages > 0 && b.messages >= c.MaxMessages || c.MaxBytes > 0 && b.bytes >= c.MaxBytes
}

// old reports whether it is time to count again.
func (b *bound) old(c driver.TopicConfig) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	age := time.Since(b.at)
	return b.at.IsZero() || age > boundAge || b.full(c) && age > fullAge
}

// recount estimates what a topic holds now, one caller at a time.
func (d *Driver) recount(ctx context.Context, t *topicState, c driver.TopicConfig) error {
	release, err := d.single(ctx, "bound/"+t.name)
	if err != nil {
		return err
	}
	defer release()
	if !t.bound.old(c) { // somebody else has, meanwhile
		return nil
	}
	at := time.Now()
	st, err := d.Stats(ctx, t.name)
	if err != nil {
		return err
	}
	t.bound.mu.Lock()
	defer t.bound.mu.Unlock()
	t.bound.at, t.bound.messages, t.bound.bytes = at, st.Messages, st.Bytes
	return nil
}

// averageSize is how many bytes a message of a topic has, by the newest of some partitions.
func (d *Driver) averageSize(ctx context.Context, t *topicState, ends map[int32]int64) (int64, error) {
	t.bound.mu.Lock()
	size, fresh := t.bound.size, time.Since(t.bound.sizedAt) < sizeAge
	t.bound.mu.Unlock()
	if fresh && size > 0 {
		return size, nil
	}
	spans := map[int32][2]int64{}
	for id, end := range ends {
		if len(spans) < sampledPartitions && end > 0 {
			spans[id] = [2]int64{max(0, end-sampled), end}
		}
	}
	var n, sum int64
	err := d.readSpans(ctx, d.mainTopic(t.name), spans, func(r *kgo.Record) {
		n++
		sum += int64(len(r.Value) + len(r.Key))
	})
	if err != nil || n == 0 {
		return size, err
	}
	t.bound.mu.Lock()
	defer t.bound.mu.Unlock()
	t.bound.size, t.bound.sizedAt = sum/n, time.Now()
	return t.bound.size, nil
}

package registry

import (
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Times of bounds: how long an estimate of what a topic holds is used, also when it says full, and how long the size of
// a message.
const (
	boundAge = time.Second
	fullAge  = 200 * time.Millisecond
	SizeAge  = 10 * time.Second

	Sampled           = 50 // newest messages of a partition whose size is looked at
	SampledPartitions = 4
)

// bound is an estimate of what a topic holds: what was counted a moment ago, and what this process has published since.
type bound struct {
	Mu              sync.Mutex
	At              time.Time
	Messages, Bytes int64
	SizedAt         time.Time
	Size            int64 // of a message, on average
}

// Full reports whether no more fits.
func (b *bound) Full(c driver.TopicConfig) bool {
	return c.MaxMessages > 0 && b.Messages >= c.MaxMessages || c.MaxBytes > 0 && b.Bytes >= c.MaxBytes
}

// Old reports whether it is time to count again.
func (b *bound) Old(c driver.TopicConfig) bool {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	age := time.Since(b.At)
	return b.At.IsZero() || age > boundAge || b.Full(c) && age > fullAge
}

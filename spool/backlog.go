package spool

import (
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/ferrymq/ferry/driver"
)

// backlog knows what is in the local store and not in the broker yet. Keys are kept as hashes: two that collide wait
// for each other, which is harmless.
type backlog struct {
	maxMessages, maxBytes int64
	seed                  maphash.Seed

	messages atomic.Int64 // written under mu

	mu    sync.Mutex
	bytes int64
	keys  map[uint64]int
}

func newBacklog(maxMessages, maxBytes int64) *backlog {
	return &backlog{maxMessages: maxMessages, maxBytes: maxBytes, seed: maphash.MakeSeed(), keys: map[uint64]int{}}
}

// place is what order holds within.
type place struct{ topic, key string }

func (b *backlog) hash(m *driver.Message) uint64 {
	return maphash.Comparable(b.seed, place{m.Topic, m.Key})
}

// empty reports whether nothing is in the store.
func (b *backlog) empty() bool { return b.messages.Load() == 0 }

// absent returns which messages have no key, or one without anything in the store. All of one key are judged alike.
func (b *backlog) absent(msgs []*driver.Message) []int {
	at := make([]int, 0, len(msgs))
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, m := range msgs {
		if m == nil || m.Key == "" || b.keys[b.hash(m)] == 0 {
			at = append(at, i)
		}
	}
	return at
}

// reserve adds a message that is about to be stored, unless it exceeds the bounds.
func (b *backlog) reserve(m *driver.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := b.messages.Load(); n >= b.maxMessages || b.bytes+int64(len(m.Body)) > b.maxBytes {
		return driver.NewError(driver.ErrFull,
			fmt.Sprintf("the spool is full: %d of %d messages, %d of %d bytes", n, b.maxMessages, b.bytes, b.maxBytes),
			"publish again when the broker is back and has taken some; or raise the bounds of the spool", nil)
	}
	b.put(m)
	return nil
}

// add adds a message that is stored already.
func (b *backlog) add(m *driver.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(m)
}

func (b *backlog) put(m *driver.Message) {
	b.messages.Add(1)
	b.bytes += int64(len(m.Body))
	if m.Key != "" {
		b.keys[b.hash(m)]++
	}
}

// remove takes a message out that is in the broker, or is not in the store.
func (b *backlog) remove(m *driver.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages.Add(-1)
	b.bytes -= int64(len(m.Body))
	if m.Key == "" {
		return
	}
	h := b.hash(m)
	if b.keys[h]--; b.keys[h] <= 0 {
		delete(b.keys, h)
	}
}

// size returns how much there is.
func (b *backlog) size() (messages, bytes int64, keys int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.messages.Load(), b.bytes, len(b.keys)
}

package engine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Options of an Engine. All fields but Decode are required.
type Options struct {
	// Capabilities are what the driver above promises.
	Capabilities driver.Capabilities
	// MaxMessages bounds what is held in all topics together, dead letters and kept messages included.
	MaxMessages int64
	// MaxIDs bounds, for each topic, the producers' own ids that are remembered after their messages are gone.
	MaxIDs int
	// MaxDedup bounds the dedup ids that each topic remembers; beyond it publishing with one answers ErrFull.
	MaxDedup int
	// Decode reads stored bytes. Nil: nothing can be decoded.
	Decode func([]byte) (*driver.Message, error)
}

// Engine is a broker in memory. It implements driver.Driver.
type Engine struct {
	o      Options
	base   time.Time
	nonce  uint64
	claims atomic.Uint64 // counts, for the tokens
	stored atomic.Int64  // messages in all topics

	topics sync.Map // name -> *topic
	mu     sync.Mutex
	closed bool           // guarded by mu; no topic is made after that
	timers sync.WaitGroup // those armed, and their callbacks
}

// New returns an empty Engine.
func New(o Options) *Engine {
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails
	return &Engine{o: o, base: time.Now(), nonce: binary.LittleEndian.Uint64(nonce[:])}
}

// Capabilities returns what the driver above promises.
func (e *Engine) Capabilities() driver.Capabilities {
	c := e.o.Capabilities
	c.Levels = slices.Clone(c.Levels)
	return c
}

// Close releases what subscriptions hold, ends waiting calls with ErrClosed, and stops all timers.
func (e *Engine) Close(context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	for _, t := range e.allTopics() {
		t.mu.Lock()
		now := e.now()
		for _, g := range t.groups {
			for _, s := range slices.Clone(g.members) {
				s.leave(now)
			}
		}
		t.end()
		t.mu.Unlock()
	}
	e.timers.Wait()
	return nil
}

// allTopics returns the topics in order of their names.
func (e *Engine) allTopics() []*topic {
	var ts []*topic
	e.topics.Range(func(_, v any) bool { ts = append(ts, v.(*topic)); return true })
	slices.SortFunc(ts, func(a, b *topic) int { return strings.Compare(a.name, b.name) })
	return ts
}

// lock returns the topic, locked and brought up to date. It is made if it does not exist.
func (e *Engine) lock(name string, now moment) (*topic, error) {
	for {
		v, ok := e.topics.Load(name)
		if !ok {
			var err error
			if v, err = e.makeTopic(name); err != nil {
				return nil, err
			}
		}
		t := v.(*topic)
		t.mu.Lock()
		if !t.ended {
			t.advance(now)
			return t, nil
		}
		t.mu.Unlock()
		if e.isClosed() {
			return nil, errClosed()
		}
	}
}

// lockExisting is like lock, but ErrNotFound when the topic does not exist.
func (e *Engine) lockExisting(name string, now moment) (*topic, error) {
	v, ok := e.topics.Load(name)
	if ok {
		t := v.(*topic)
		t.mu.Lock()
		if !t.ended {
			t.advance(now)
			return t, nil
		}
		t.mu.Unlock()
	}
	if e.isClosed() {
		return nil, errClosed()
	}
	return nil, e.noTopic(name)
}

// lockAll locks several topics in the order of their names, so that a step over all of them is one.
func (e *Engine) lockAll(names []string, now moment) (map[string]*topic, error) {
	slices.Sort(names)
	names = slices.Compact(names)
	ts := make(map[string]*topic, len(names))
	for _, name := range names {
		t, err := e.lock(name, now)
		if err != nil {
			unlockAll(ts, now)
			return nil, err
		}
		ts[name] = t
	}
	return ts, nil
}

func unlockAll(ts map[string]*topic, now moment) {
	for _, t := range ts {
		t.unlock(now)
	}
}

func (e *Engine) makeTopic(name string) (any, error) {
	if err := driver.CheckName("topic", name); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errClosed()
	}
	v, _ := e.topics.LoadOrStore(name, newTopic(e, name))
	return v, nil
}

func (e *Engine) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

func errClosed() error {
	return driver.NewError(driver.ErrClosed, "the driver is closed", "open it again", nil)
}

func (e *Engine) noTopic(name string) error {
	var names []string
	for _, t := range e.allTopics() {
		names = append(names, t.name)
	}
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("topic %q does not exist", name), "existing topics: "+listed(names), nil)
}

// listed shows at most ten names.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	text := strings.Join(names[:min(len(names), 10)], ", ")
	if len(names) > 10 {
		text += fmt.Sprintf(" and %d more", len(names)-10)
	}
	return text
}

package spool

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Hooks are optional functions that are called as things happen, for alerts. They run in line: keep them short. That a
// message was spooled is in the receipt of its Published hook.
type Hooks struct {
	Away func(err error)           // the broker has stopped answering
	Back func(after time.Duration) // it answers again
	// the broker refused a spooled message for good; it is a dead letter of the local store
	Dead    func(m *driver.Message, err error)
	Expired func(m *driver.Message) // its TTL ended in the spool
	// the local store did not take it, and neither did the emergency file; its publisher was told
	Full      func(m *driver.Message, err error)
	Emergency func(m *driver.Message, file string, err error) // it went to the emergency file, unless err says why not
}

// Stats are figures of a spool: what is there now, and counts since New.
type Stats struct {
	// AwaySince is when the broker stopped answering; zero while it answers.
	AwaySince time.Time
	// Messages wait in the local store, of at most MaxMessages; they take Bytes of at most MaxBytes, and have Keys
	// different keys.
	Messages, MaxMessages int64
	Bytes, MaxBytes       int64
	Keys                  int
	// Dead are dead letters of the local store.
	Dead int64

	// Failures are publishes that the broker did not answer, or refused for now.
	Failures uint64
	// Spooled came into the local store. Each is Drained (in the broker), Expired, Buried (a dead letter), or waits.
	Spooled, Drained, Expired, Buried uint64
	// Adopted were taken over from processes that died; they are among Spooled, too.
	Adopted uint64
	// Refused found the store full or broken; Emergencies went to the emergency file.
	Refused, Emergencies uint64
	// LastSpooled is when a message last had to be spooled.
	LastSpooled time.Time
}

// counters are written without a lock.
type counters struct {
	dead                                                                       atomic.Int64
	failures, spooled, drained, expired, buried, adopted, refused, emergencies atomic.Uint64
	last                                                                       atomic.Int64
}

func (c *counters) noteSpooled() {
	c.spooled.Add(1)
	c.last.Store(time.Now().UnixNano())
}

// SpoolStats returns the figures of the spool. Those of the broker's topics are in Stats.
func (d *Driver) SpoolStats() Stats {
	c := &d.count
	s := Stats{AwaySince: d.breaker.away(), MaxMessages: d.o.MaxMessages, MaxBytes: d.o.MaxBytes, Dead: c.dead.Load(),
		Failures: c.failures.Load(),
		Spooled:  c.spooled.Load(), Drained: c.drained.Load(), Expired: c.expired.Load(), Buried: c.buried.Load(),
		Adopted: c.adopted.Load(),
		Refused: c.refused.Load(), Emergencies: c.emergencies.Load()}
	s.Messages, s.Bytes, s.Keys = d.backlog.size()
	if at := c.last.Load(); at != 0 {
		s.LastSpooled = time.Unix(0, at)
	}
	return s
}

// answered notes that the broker answers.
func (d *Driver) answered() {
	after, closed := d.breaker.succeed()
	if !closed {
		return
	}
	d.o.Logger.Info("ferry: the broker answers again, and gets what was spooled", "after", after, "messages",
		d.backlog.messages.Load())
	if f := d.o.Hooks.Back; f != nil {
		d.guarded("Back", func() { f(after) })
	}
}

// failed notes that the broker did not answer.
func (d *Driver) failed(err error) {
	d.count.failures.Add(1)
	if !d.breaker.fail(err) {
		return
	}
	d.o.Logger.Warn("ferry: the broker does not answer: messages are spooled", "error", err)
	if f := d.o.Hooks.Away; f != nil {
		d.guarded("Away", func() { f(err) })
	}
}

func (d *Driver) noteFull(m *driver.Message, err error) {
	d.count.refused.Add(1)
	if f := d.o.Hooks.Full; f != nil {
		d.guarded("Full", func() { f(m, err) })
	}
}

func (d *Driver) noteEmergency(m *driver.Message, file string, err error) {
	if err == nil {
		d.count.emergencies.Add(1)
	}
	d.o.Logger.Error("ferry: EMERGENCY: the spool took no message, and it goes to the emergency file", "file", file,
		"topic", m.Topic, "id", m.ID, "error", err)
	if f := d.o.Hooks.Emergency; f != nil {
		d.guarded("Emergency", func() { f(m, file, err) })
	}
}

// guarded calls a hook, and lets no panic through.
func (d *Driver) guarded(name string, call func()) {
	defer func() {
		if p := recover(); p != nil {
			d.o.Logger.ErrorContext(context.Background(), "a hook panicked", "hook", name, "panic", p)
		}
	}()
	call()
}

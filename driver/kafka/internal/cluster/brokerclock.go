package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// brokerClock tells what time it is at the brokers, without this machine's wall clock: a record is stored before its
// acknowledgement comes, so that the brokers' time is at least the record's time plus what has passed since. It may be
// behind by a round trip, and is never ahead: nothing is early.
type brokerClock struct {
	mu    sync.Mutex
	at    time.Time // of a record
	since time.Time // local, monotonic: when it was acknowledged, or fetched
	late  time.Time // of a record
	sent  time.Time // local: when it was sent, so that it is no later at the brokers than late and what has passed since
	kept  sync.Once // right, from then on
}

// Rows of the meta topic that are neither topic nor group.
const (
	clockKey  = "clock"
	DelaysKey = "delays"

	probeEvery = 30 * time.Second
	probeAge   = 5 * time.Minute // then a newer one replaces it even if it is behind
)

// Now is the brokers' time.
func (d *Cluster) Now() time.Time {
	d.Clock.mu.Lock()
	defer d.Clock.mu.Unlock()
	if d.Clock.since.IsZero() {
		return time.Now()
	}
	return d.Clock.at.Add(time.Since(d.Clock.since))
}

// early is how much earlier than by now something may end that must not be delivered late. It is bounded: a slow probe
// says little.
const early = 40 * time.Millisecond

// EndsAt turns a time of the brokers at which something must be over into one of this machine.
func (d *Cluster) EndsAt(t time.Time) time.Time {
	now := d.Now()
	d.Clock.mu.Lock()
	latest := now
	if !d.Clock.sent.IsZero() {
		latest = d.Clock.late.Add(time.Since(d.Clock.sent))
	}
	d.Clock.mu.Unlock()
	return d.Local(t).Add(-min(early, max(0, latest.Sub(now))))
}

// Local turns a time of the brokers into one of this machine.
func (d *Cluster) Local(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.Now().Add(t.Sub(d.Now()))
}

// StartClock sets the clock, and keeps it right until the driver ends.
func (d *Cluster) StartClock(ctx context.Context) error {
	d.Clock.mu.Lock()
	set := !d.Clock.since.IsZero()
	d.Clock.mu.Unlock()
	if set {
		return nil
	}
	if err := d.Probe(ctx); err != nil {
		return err
	}
	open := true
	d.Clock.kept.Do(func() { open = d.Task(d.keepClock) })
	if !open {
		return refusal.Closed()
	}
	return nil
}

func (d *Cluster) keepClock() {
	for Pause(d.life, probeEvery) == nil {
		ctx, cancel := context.WithTimeout(d.life, d.Settings.Session)
		_ = d.Probe(ctx) // the old one is still right, but for drift
		cancel()
	}
}

// Probe stores a record and reads when the brokers say it was.
func (d *Cluster) Probe(ctx context.Context) error {
	r := &kgo.Record{Topic: d.MetaTopic(), Key: []byte(clockKey), Value: []byte{}}
	sent := time.Now()
	if err := d.Produce(ctx, r); err != nil {
		return err
	}
	acked := time.Now()
	stored, err := d.ReadOne(ctx, r.Topic, r.Partition, r.Offset)
	if err != nil || stored == nil {
		return driver.NewError(driver.ErrNotApplied, "the time of the brokers cannot be read",
			"see whether the brokers can be reached", err)
	}
	d.Clock.Take(stored.Timestamp, sent, acked)
	return nil
}

// Take believes a probe that says more than those before, or when they are old.
func (c *brokerClock) Take(at, sent, acked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() || time.Since(c.since) > probeAge || at.After(c.at.Add(acked.Sub(c.since))) {
		c.at, c.since = at, acked
	}
	at = at.Add(time.Millisecond) // it was cut to milliseconds
	if c.sent.IsZero() || time.Since(c.sent) > probeAge || at.Before(c.late.Add(sent.Sub(c.sent))) {
		c.late, c.sent = at, sent
	}
}

// Fetched is told when a record was stored that has just come: it is later at the brokers now.
func (c *brokerClock) Fetched(at, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.since.IsZero() && at.After(c.at.Add(now.Sub(c.since))) {
		c.at, c.since = at, now
	}
}

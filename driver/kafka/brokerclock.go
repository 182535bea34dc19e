package kafka

import (
	"context"
	"crypto/rand"
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
	mu     sync.Mutex
	at     time.Time // of a record
	since  time.Time // local, monotonic: when it was acknowledged, or fetched
	late   time.Time // of a record
	sent   time.Time // local: when it was sent, so that it is no later at the brokers than late and what has passed since
	probes map[string]chan time.Time
	used   bool // somebody keeps it right
}

// Rows of the meta topic that are neither topic nor group.
const (
	clockKey  = "clock"
	delaysKey = "delays"

	probeEvery = 30 * time.Second
	probeAge   = 5 * time.Minute // then a newer one replaces it even if it is behind
)

// now is the brokers' time.
func (d *Driver) now() time.Time {
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	if d.clock.since.IsZero() {
		return time.Now()
	}
	return d.clock.at.Add(time.Since(d.clock.since))
}

// early is how much earlier than by now something may end that must not be delivered late. It is bounded: a slow probe says little.
const early = 40 * time.Millisecond

// endsAt turns a time of the brokers at which something must be over into one of this machine.
func (d *Driver) endsAt(t time.Time) time.Time {
	now := d.now()
	d.clock.mu.Lock()
	latest := now
	if !d.clock.sent.IsZero() {
		latest = d.clock.late.Add(time.Since(d.clock.sent))
	}
	d.clock.mu.Unlock()
	return d.local(t).Add(-min(early, max(0, latest.Sub(now))))
}

// local turns a time of the brokers into one of this machine.
func (d *Driver) local(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.Now().Add(t.Sub(d.now()))
}

// startClock sets the clock, and keeps it right until the driver ends.
func (d *Driver) startClock(ctx context.Context) error {
	d.clock.mu.Lock()
	set := !d.clock.since.IsZero()
	d.clock.mu.Unlock()
	if set {
		return nil
	}
	if err := d.probe(ctx); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return refusal.Closed()
	}
	if d.clock.used {
		return nil
	}
	d.clock.used = true
	d.tasks.Go(func() {
		tick := time.NewTicker(probeEvery)
		defer tick.Stop()
		for {
			select {
			case <-d.done:
				return
			case <-tick.C:
			}
			ctx, cancel := context.WithTimeout(context.Background(), d.o.Session)
			_ = d.probe(ctx) // the old one is still right, but for drift
			cancel()
		}
	})
	return nil
}

// probe stores a record and reads when the brokers say it was.
func (d *Driver) probe(ctx context.Context) error {
	nonce, seen := rand.Text(), make(chan time.Time, 1)
	d.clock.mu.Lock()
	d.clock.probes[nonce] = seen
	d.clock.mu.Unlock()
	defer func() {
		d.clock.mu.Lock()
		delete(d.clock.probes, nonce)
		d.clock.mu.Unlock()
	}()
	sent := time.Now()
	if err := d.produce(ctx, &kgo.Record{Topic: d.metaTopic(), Key: []byte(clockKey), Value: []byte(nonce)}); err != nil {
		return err
	}
	acked := time.Now()
	select {
	case at := <-seen:
		d.clock.take(at, sent, acked)
		return nil
	case <-ctx.Done():
		return driver.NewError(driver.ErrNotApplied, "the time of the brokers cannot be read", "see whether the brokers can be reached", ctx.Err())
	case <-d.done:
		return refusal.Closed()
	}
}

// take believes a probe that says more than those before, or when they are old.
func (c *brokerClock) take(at, sent, acked time.Time) {
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

// fetched is told when a record was stored that has just come: it is later at the brokers now.
func (c *brokerClock) fetched(at, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.since.IsZero() && at.After(c.at.Add(now.Sub(c.since))) {
		c.at, c.since = at, now
	}
}

// metaSeen is told of each record of the meta topic.
func (d *Driver) metaSeen(r *kgo.Record) {
	if string(r.Key) != clockKey {
		return
	}
	d.clock.mu.Lock()
	seen := d.clock.probes[string(r.Value)]
	d.clock.mu.Unlock()
	if seen != nil {
		select {
		case seen <- r.Timestamp:
		default:
		}
	}
}

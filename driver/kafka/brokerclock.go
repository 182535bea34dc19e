package kafka

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// brokerClock tells what time it is at the brokers, without this machine's wall clock: a record is stored before its
// acknowledgement comes, so that the brokers' time is at least the record's time plus what has passed since. It may be
// behind by a round trip, and is never ahead: nothing is early.
type brokerClock struct {
	mu     sync.Mutex
	at     time.Time // of the record
	since  time.Time // local, monotonic: when it was acknowledged
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
		return errClosed()
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
	if err := d.produce(ctx, &kgo.Record{Topic: d.metaTopic(), Key: []byte(clockKey), Value: []byte(nonce)}); err != nil {
		return err
	}
	acked := time.Now()
	select {
	case at := <-seen:
		d.clock.take(at, acked)
		return nil
	case <-ctx.Done():
		return driver.NewError(driver.ErrNotApplied, "the time of the brokers cannot be read", "see whether the brokers can be reached", ctx.Err())
	case <-d.done:
		return errClosed()
	}
}

// take believes a probe that shows a later time than the one before, or when that one is old.
func (c *brokerClock) take(at, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() || time.Since(c.since) > probeAge || at.After(c.at.Add(since.Sub(c.since))) {
		c.at, c.since = at, since
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

package notify

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// destination is what processes know together of where they send: its last sends, and what is collected for it. It is
// one named value, so that a place among the sends is taken, or a digest joined, in one step.
type destination struct {
	// Sends are the times of the last ones, in milliseconds of the backend's clock, in order. Each is written before
	// its send: a process that is killed between wastes a place, and never exceeds a limit.
	Sends []int64 `json:"sends,omitempty"`
	// Until is when the vendor wants to hear of us again.
	Until int64 `json:"until,omitempty"`

	// Asked collects messages that asked for a digest, Overflow those that the limits hold up.
	Asked    collection `json:"asked,omitzero"`
	Overflow collection `json:"overflow,omitzero"`
	// Digests is the number of the last digest.
	Digests uint64 `json:"digests,omitempty"`
}

// destinations are the values of all.
type destinations struct{ kv driver.KV }

// destinationFor is how long a destination is remembered: longer than any limit, any wait that a vendor asks for, and
// any window of a digest.
const destinationFor = 8 * 24 * time.Hour

// update changes a destination in one step. change may be called several times; it reports whether there is anything
// to write.
func (s destinations) update(ctx context.Context, key string, change func(d *destination) bool) error {
	name, bucket := "destination/"+key, bucketOf(key)
	values, err := s.kv.Get(ctx, bucket, name)
	if err != nil {
		return err
	}
	found := values[0]
	for {
		var d destination
		if found.Revision != 0 {
			if err := json.Unmarshal(found.Data, &d); err != nil {
				return driver.NewError(ferry.ErrInvalid, "the state of a destination cannot be read",
					"delete "+bucket+" "+name, err)
			}
		}
		if !change(&d) {
			return nil
		}
		data, err := json.Marshal(d)
		if err != nil {
			return err
		}
		w := driver.Write{Name: name, Data: data, If: condition(found.Revision), TTL: destinationFor, Quiet: true}
		r := s.kv.Apply(ctx, bucket, driver.KVOptions{}, w)[0]
		if !errors.Is(r.Err, ferry.ErrConflict) {
			return r.Err
		}
		found = r.Value // whole, beside a conflict
	}
}

// reserve takes places among the sends to the job's destination, or tells how long to wait for them.
func (a *attempt) reserve(ctx context.Context, c Channel, r Rendered) (wait time.Duration, err error) {
	l, n := c.Limits(), 1
	if len(l.Rates) == 0 {
		return 0, nil
	}
	if c, ok := c.(counter); ok {
		n = c.Sends(r)
	}
	now := a.hub.clock.now().UnixMilli()
	err = a.hub.places.update(ctx, a.job.target().key(), func(d *destination) bool {
		wait = d.wait(l.Rates, n, now)
		if wait == 0 && d.Overflow.Open != nil && a.collectable(l) {
			wait = time.Millisecond // what is collected comes before what is new
		}
		if wait > 0 {
			return false
		}
		d.send(l.Rates, n, now)
		return true
	})
	return wait, err
}

// wait is how long there is no place for n sends, at a time in milliseconds. A twentieth is added to what a vendor asks
// for: it counts by arrivals, and one send may take longer on its way than the next.
func (d *destination) wait(rates []Rate, n int, now int64) time.Duration {
	until := d.Until
	for _, r := range rates {
		if over := len(d.Sends) + min(n, r.Sends) - r.Sends; over > 0 {
			until = max(until, d.Sends[over-1]+(r.Per+r.Per/20).Milliseconds())
		}
	}
	return time.Duration(max(until-now, 0)) * time.Millisecond
}

// send notes sends, and forgets those that no rate asks for.
func (d *destination) send(rates []Rate, n int, now int64) {
	most := 0
	for _, r := range rates {
		most = max(most, r.Sends)
	}
	for range n {
		d.Sends = append(d.Sends, now)
	}
	d.Sends = d.Sends[max(0, len(d.Sends)-most):]
}

// limited is what becomes of a job that must wait: it joins a digest where the channel has them, or keeps its turn.
func (a *attempt) limited(ctx context.Context, l Limits, wait time.Duration, parts int) error {
	a.counts.limited.Add(1)
	if parts > 1 || !a.collectable(l) {
		return worker.Park(wait)
	}
	err := a.collect(ctx, Digest{Window: wait, Count: maxDigest},
		func(d *destination) *collection { return &d.Overflow })
	if errors.Is(err, ferry.ErrTooLarge) {
		return worker.Park(wait)
	}
	return err
}

// collectable reports whether the job may be sent as part of a digest that it did not ask for.
func (a *attempt) collectable(l Limits) bool {
	j := a.job
	return l.Digest && len(j.Chain) == 1 && len(j.Members) == 0 && len(j.Attachments) == 0
}

// holdBack keeps all processes from sending to a destination whose vendor asked for it.
func (h *Hub) holdBack(ctx context.Context, t Target, after time.Duration) {
	until := h.clock.now().Add(after).UnixMilli()
	err := h.places.update(ctx, t.key(), func(d *destination) bool {
		d.Until = max(d.Until, until)
		return true
	})
	if err != nil {
		h.log.WarnContext(ctx, "the limit of a destination is not kept", "channel", t.Channel, "error", err)
	}
}

// clock estimates the backend's clock, which processes share: by the times of claims, of which the one that arrived
// fastest tells most. Between claims it goes by a clock that nobody sets, since a step of this machine's own would hold
// back, or let pass, what all processes send.
type clock struct {
	start  time.Time
	passed func() time.Duration // since start
	ahead  atomic.Pointer[time.Duration]
}

// newClock starts with the machine's clock.
func newClock(start time.Time) *clock {
	return &clock{start: start.Round(0), passed: func() time.Duration { return time.Since(start) }}
}

// observe learns from a claim that was made a moment ago.
func (c *clock) observe(claimed time.Time) {
	seen := claimed.Sub(c.own())
	for {
		known := c.ahead.Load()
		if known != nil && *known >= seen || c.ahead.CompareAndSwap(known, &seen) {
			return
		}
	}
}

func (c *clock) now() time.Time {
	if ahead := c.ahead.Load(); ahead != nil {
		return c.own().Add(*ahead)
	}
	return c.own()
}

// own is the time here, as if nobody had set the clock since the start.
func (c *clock) own() time.Time { return c.start.Add(c.passed()) }

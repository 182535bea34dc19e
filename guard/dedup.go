package guard

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/worker"
)

// DedupOptions of a Dedup.
type DedupOptions struct {
	// Name is what the store calls it: layers with one name in one store share their marks.
	Name string
	// ID says which work a message stands for; an empty one is handled without looking. Defaults to ByDedupID.
	ID func(d *ferry.Delivery) string
	// Window is how long what was done is remembered. Defaults to 24 hours.
	Window time.Duration
	// Lease is how long after a crash its work may be begun by another, in a store that processes share. It is renewed
	// while the handler runs. Defaults to 30 s.
	Lease time.Duration
	// FailOpen lets messages pass while the store cannot be reached. Otherwise they wait.
	FailOpen bool
	Hook     Hook
}

// Dedup handles the work of each id once. It is marked as done after the handler succeeded, never before; while it is
// under way, nobody else begins it. A message whose work was done is acknowledged.
//
// A crash between the end of the handler and the mark, and a store that loses the mark, let it be handled again:
// delivery stays at least once.
type Dedup struct {
	store  Store
	o      DedupOptions
	outage *outage
	counters
}

// ByDedupID takes the message's dedup id, or its id, within its topic and group.
func ByDedupID(d *ferry.Delivery) string {
	if d.DedupID != "" {
		return d.Topic + "/" + d.Group + "/d/" + d.DedupID
	}
	return ByMessageID(d)
}

// ByMessageID takes the message's id, within its topic and group.
func ByMessageID(d *ferry.Delivery) string { return d.Topic + "/" + d.Group + "/i/" + d.ID }

// NewDedup returns a layer with its marks in a store.
func NewDedup(s Store, o DedupOptions) (*Dedup, error) {
	if s == nil {
		return nil, driver.NewError(driver.ErrInvalid, "the dedup layer has no store",
			"give it NewMemory(MemoryOptions{}), for example", nil)
	}
	if err := driver.CheckName("dedup", o.Name); err != nil {
		return nil, err
	}
	switch {
	case o.Window < 0 || o.Window > store.MaxSpan:
		return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("dedup %q: window %v", o.Name, o.Window),
			"leave it zero for 24 hours", nil)
	case o.Lease < 0 || o.Lease > 0 && o.Lease < time.Second:
		return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("dedup %q: lease %v", o.Name, o.Lease),
			"use 1s or more", nil)
	}
	if o.Window == 0 {
		o.Window = day
	}
	if o.Lease == 0 {
		o.Lease = 30 * time.Second
	}
	return &Dedup{store: s, o: o, outage: newOutage(s)}, nil
}

// Middleware handles each message's work once.
func (l *Dedup) Middleware() worker.Middleware {
	return func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, d *ferry.Delivery) error {
			r := store.MarkRequest{Name: l.o.Name, Lease: l.o.Lease, Window: l.o.Window}
			var asked time.Time // for a lease, of which a store in this process has none
			if !l.digest(&r, d) {
				if r.ID = l.id(d); r.ID == "" {
					return next(ctx, d)
				}
				if l.outage.instant {
					r.Digest() // once for all its calls
				} else {
					asked = time.Now()
				}
			}
			m, wait, err := l.begin(ctx, &r, d)
			switch {
			case err != nil && l.o.FailOpen:
				return next(ctx, d)
			case err != nil:
				return (&Refusal{Layer: layerDedup, Name: r.Name, Key: r.ID, After: wait, Err: err}).decide(Park, wait)
			case m.Done:
				l.duplicates.Add(1)
				l.o.Hook.tell(ctx, Event{Kind: EventDuplicate, Layer: layerDedup, Name: r.Name, Key: r.ID})
				return nil
			case !m.Ours:
				return l.busy(ctx, r, m)
			}
			l.admitted.Add(1)
			r.Token = m.Token
			return l.run(ctx, d, next, r, m, asked)
		}
	}
}

func (l *Dedup) id(d *ferry.Delivery) string {
	if l.o.ID == nil {
		return bounded(ByDedupID(d))
	}
	return bounded(l.o.ID(d))
}

// digest sets the digest of what ByDedupID says, without its text, if that is enough.
func (l *Dedup) digest(r *store.MarkRequest, d *ferry.Delivery) bool {
	const longest = 128 // of what bounded leaves as it is
	if !l.outage.instant || l.o.ID != nil || len(d.DedupID) > longest || len(d.ID) > longest ||
		!utf8.ValidString(d.DedupID) || !utf8.ValidString(d.ID) || len(d.Topic)+len(d.Group) > longest {
		return false
	}
	if d.DedupID != "" {
		r.DigestOf(d.Topic, "/", d.Group, "/d/", d.DedupID)
	} else {
		r.DigestOf(d.Topic, "/", d.Group, "/i/", d.ID)
	}
	return true
}

func (l *Dedup) begin(ctx context.Context, r *store.MarkRequest, d *ferry.Delivery) (m store.Mark,
	wait time.Duration, err error) {
	wait, ok := l.outage.may()
	if err = errStoreDown; ok {
		bounded, cancel := l.outage.bounded(ctx)
		m, err = l.store.Begin(bounded, *r)
		cancel()
		wait = l.outage.learn(err)
	}
	if !m.Ours && r.ID == "" {
		r.ID = l.id(d) // there is something to tell of it
	}
	if err != nil {
		l.failures.Add(1)
		l.o.Hook.tell(ctx, Event{Kind: EventStoreFailed, Layer: layerDedup, Name: r.Name, Key: r.ID, Err: err})
	}
	return m, wait, err
}

// busy puts a message off while another does its work.
func (l *Dedup) busy(ctx context.Context, r store.MarkRequest, m store.Mark) error {
	l.refused.Add(1)
	wait := time.Second
	if m.After > 0 {
		wait = min(wait, m.After)
	}
	wait = jitter(wait)
	l.o.Hook.tell(ctx, Event{Kind: EventBusy, Layer: layerDedup, Name: r.Name, Key: r.ID, After: wait})
	return (&Refusal{Layer: layerDedup, Name: r.Name, Key: r.ID, Reason: driver.ReasonOverload, After: wait}).decide(Park,
		wait)
}

// run handles a message and marks its work as done, or gives it up however the handler ends.
func (l *Dedup) run(ctx context.Context, d *ferry.Delivery, next worker.Handler, r store.MarkRequest, m store.Mark,
	asked time.Time) (err error) {
	done, inner := false, ctx
	var k *keeper
	if m.Leased {
		k = keep(ctx, asked, r.Lease, func(ctx context.Context) (bool, error) {
			m, err := l.store.Begin(ctx, r)
			return m.Ours, err
		})
		inner = k.ctx
	}
	defer func() {
		if k != nil && !k.stop() {
			l.lost.Add(1)
			l.o.Hook.tell(ctx, Event{Kind: EventLost, Layer: layerDedup, Name: r.Name, Key: r.ID})
			if err != nil { // we ended its context: that is no attempt
				err = (&Refusal{Layer: layerDedup, Name: r.Name, Key: r.ID, Reason: driver.ReasonOverload}).decide(Park,
					jitter(time.Second))
			}
		}
		l.conclude(ctx, r, done)
	}()
	err = next(inner, d)
	done = err == nil
	return err
}

func (l *Dedup) conclude(ctx context.Context, r store.MarkRequest, done bool) {
	finish := l.store.Abort
	if done {
		finish = l.store.Complete
	}
	if err := l.outage.later(ctx, func(ctx context.Context) error { return finish(ctx, r) }); err != nil {
		l.failures.Add(1)
		l.o.Hook.tell(ctx, Event{Kind: EventStoreFailed, Layer: layerDedup, Name: r.Name, Key: r.ID, Err: err})
	}
}

// Stats count what the layer did in this process.
func (l *Dedup) Stats() Stats { return l.stats() }

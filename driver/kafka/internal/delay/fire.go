package delay

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// fireBatch is the most that moves in one round.
const fireBatch = 1000

// run moves what may leave its tier, and fires what is due, until the driver ends.
func (w *firer) run(ctx context.Context) {
	w.ring.Rounds(ctx, func() time.Duration { return w.round(ctx) })
}

// vouched reports whether what we own is surely still ours. A process that was stopped for longer than its session has
// lost it and does not know it yet: what it would fire then, others have fired. So the coordinator is asked whenever
// its last answer is old.
func (w *firer) vouched(ctx context.Context) bool {
	sent := time.Now()
	if sent.Sub(w.heard) < w.d.cluster.Settings.Session/2 {
		return true
	}
	if _, _, err := w.Heartbeat(ctx, w.d.cluster, w.d.cluster.DelayTopic()); err != nil {
		return false
	}
	w.heard = sent
	return true
}

func (w *firer) ownsSome() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.parts) > 0
}

// round does what is due now, and returns how long there is nothing to do.
func (w *firer) round(ctx context.Context) time.Duration {
	if w.ownsSome() && !w.vouched(ctx) {
		w.NoteGeneration(w.cl) // a rebalance may have brought another one
		return cluster.FetchWait / 5
	}
	over := make(chan struct{})
	defer close(over)
	now := w.d.cluster.Now()
	w.fetching.Lock()
	w.mu.Lock()
	w.firing = over
	moving, resumed := w.leaving(now)
	due := w.ringing(now)
	w.lookAhead(now)
	w.mu.Unlock()
	if len(resumed) > 0 {
		w.cl.ResumeFetchPartitions(map[string][]int32{w.d.cluster.DelayTopic(): resumed})
	}
	w.fetching.Unlock()
	w.forward(ctx, moving, due, now)
	if len(moving)+len(due) > 0 {
		return 0
	}
	return w.idle(w.d.cluster.Now())
}

// leaving takes what may leave its tier out of the queues: onwards to another tier, or into the timers. What expires
// before it is due rings then: until it is due it would hold up what has left after it.
func (w *firer) leaving(now time.Time) (moving []*Delayed, resumed []int32) {
	for id, p := range w.parts {
		for len(p.queue) > 0 && !p.lost && !p.queue[0].leave.After(now) && !p.spread(p.queue[0]) && len(moving) < fireBatch {
			x := p.queue[0]
			if x.rings().Sub(now) >= lastStretch {
				moving = append(moving, x)
			} else if !w.wind(x) {
				break
			}
			p.queue[0] = nil
			p.queue = p.queue[1:]
			p.bytes -= x.size()
		}
		if p.paused && len(p.queue) < maxQueued/2 && p.bytes < maxQueuedBytes/2 {
			p.paused = false
			resumed = append(resumed, id)
		}
	}
	return moving, resumed
}

// wind sets the timer of a message, unless there are too many.
func (w *firer) wind(x *Delayed) bool {
	if n := w.timers.Len(); n >= maxTimers || n > 0 && w.bytes+x.size() > maxTimersBytes {
		return false
	}
	w.set(x, x.rings().UnixNano())
	return true
}

// set lets a message ring at a time.
func (w *firer) set(x *Delayed, at int64) {
	w.bytes += x.size()
	w.timers.Push(at, 0, x)
}

// ringing takes what is due out of the timers, as far as it is known whether it was moved or deleted.
func (w *firer) ringing(now time.Time) (due []*Delayed) {
	for w.timers.Next() <= now.UnixNano() && !w.blind(w.timers.Top()) && len(due) < fireBatch {
		x := w.timers.Top()
		w.timers.RemoveAt(0)
		w.bytes -= x.size()
		if !x.p.lost {
			due = append(due, x)
		}
	}
	return due
}

// retry lets a message ring again at a time.
func (w *firer) retry(x *Delayed, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !x.p.lost {
		w.set(x, at.UnixNano())
	}
}

// idle is how long nothing leaves a tier or rings.
func (w *firer) idle(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := time.Minute
	full := w.timers.Len() >= maxTimers || w.bytes >= maxTimersBytes
	for _, p := range w.parts {
		if len(p.queue) > 0 && !full && !p.spread(p.queue[0]) {
			wait = min(wait, p.queue[0].leave.Sub(now))
		}
	}
	switch looking := w.lookAhead(now); {
	case looking: // whoever looks tells when it is done
	case w.timers.Len() > 0 && w.blind(w.timers.Top()):
		wait = min(wait, w.timers.Top().rings().Sub(now)-sealed/2+time.Millisecond)
	case w.timers.Len() > 0:
		wait = min(wait, time.Duration(w.timers.Next()-now.UnixNano()))
	}
	return wait
}

// onward is a message that leaves its tier, and what it becomes: a record, or a dead letter for each group.
type onward struct {
	*Delayed
	records []*kgo.Record
}

// forward stores messages where they go next.
func (w *firer) forward(ctx context.Context, moving, due []*Delayed, now time.Time) {
	var leaving []onward
	for _, x := range append(moving, due...) {
		rs, err := w.next(ctx, x, now)
		switch {
		case err != nil:
			w.retry(x, now.Add(time.Second))
		case len(rs) == 0: // it ends here
			w.left(x)
		default:
			leaving = append(leaving, onward{x, rs})
		}
	}
	// what is sent when we stop is stored, and must be known
	staying, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.d.cluster.Settings.Session)
	defer cancel()
	if w.d.cluster.Settings.Transactions {
		w.storeTogether(staying, leaving)
	} else {
		w.storeFirst(staying, leaving, now)
	}
}

// storeFirst stores messages where they go next; only then have they left here. A crash between the two repeats them.
func (w *firer) storeFirst(ctx context.Context, leaving []onward, now time.Time) {
	errs := w.d.cluster.ProduceEach(ctx, recordsOf(leaving))
	for _, o := range leaving {
		if err := errors.Join(errs[:len(o.records)]...); err != nil {
			w.retry(o.Delayed, now.Add(time.Second))
		} else {
			w.left(o.Delayed)
		}
		errs = errs[len(o.records):]
	}
}

func recordsOf(leaving []onward) (rs []*kgo.Record) {
	for _, o := range leaving {
		rs = append(rs, o.records...)
	}
	return rs
}

// next is what a message becomes. After an error it must be tried again.
func (w *firer) next(ctx context.Context, x *Delayed, now time.Time) ([]*kgo.Record, error) {
	t, err := w.d.registry.Current(ctx, x.M.Topic)
	switch {
	case w.voided(x), cluster.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case x.expired(now):
		return w.letters(t, x, now), nil
	case x.due.After(now):
		s := x.S
		s.Until = 0
		// never a part of a millisecond early
		s.Ref, s.Entered, s.Due = x.Ref, x.entered.UnixMilli(), (x.due.UnixMicro()+999)/1000
		return []*kgo.Record{w.TierRecord(x.M, s, x.due.Sub(now))}, nil
	}
	r := record.ToRecord(w.d.cluster.MainTopic(x.M.Topic), w.d.registry.PartitionFor(t, x.M.Key), x.M)
	if x.S.Cause != driver.CauseFirst {
		r.Headers = append(r.Headers, record.State{Cause: x.S.Cause, Offset: -1}.Header())
	}
	return []*kgo.Record{r}, nil
}

// letters are the dead letters of what has expired before it was due, one for each group, or none where its topic
// discards it. A repeat replaces them.
func (w *firer) letters(t *registry.TopicState, x *Delayed, now time.Time) (rs []*kgo.Record) {
	if !w.d.registry.RowOf(t).Config.ExpiredDead {
		return nil
	}
	for _, g := range w.d.registry.GroupsOf(t.Name) {
		dl := &driver.DeadLetter{Message: x.M, Deliveries: 1, Origin: driver.Origin{Topic: t.Name, Group: g, Ref: x.Ref}}
		dl.Bury(driver.Failure{At: now.UTC(), Reason: driver.ReasonExpired, Error: "expired before it was handled"})
		rs = append(rs, w.d.registry.DeadRecord(dl))
	}
	return rs
}

// left notes that a message is no longer here.
func (w *firer) left(x *Delayed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x.p.done.Set(x.offset)
	x.p.dirty = true
}

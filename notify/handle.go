package notify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// brokerAway is how long a job waits when the broker does not tell its state: nothing was sent, so no attempt is burnt.
const brokerAway = time.Second

// handle does one job.
func (h *Hub) handle(ctx context.Context, m *ferry.Msg[job]) error {
	j := &m.Value
	if len(j.Chain) == 0 || j.Stage < 0 || j.Stage >= len(j.Chain) {
		return worker.Dead(driver.ReasonInvalidMessage, invalid("see who publishes to the topic",
			"this is no notification"))
	}
	h.clock.observe(m.ClaimedAt)
	if j.Flush != 0 {
		return h.flush(ctx, j)
	}
	records, err := h.records.get(ctx, j.references()...)
	if err != nil {
		return h.away(ctx, err)
	}
	a := &attempt{hub: h, job: j, delivery: m.Delivery, records: records, counts: h.count(j.target().Channel)}
	return a.run(ctx)
}

// away parks a job while the broker cannot be asked.
func (h *Hub) away(ctx context.Context, err error) error {
	if !transient(err) && ctx.Err() == nil {
		return err
	}
	h.log.WarnContext(ctx, "the state of a notification cannot be read; it waits", "error", err)
	return worker.Park(brokerAway)
}

// count returns the counts of a channel; of one that this hub does not have they go nowhere.
func (h *Hub) count(channel string) *counts {
	if c, ok := h.offer.Load().counts[channel]; ok {
		return c
	}
	return &counts{}
}

// attempt is one try of a job.
type attempt struct {
	hub      *Hub
	job      *job
	delivery *ferry.Delivery
	records  []kept // of the job, or of the members of a digest
	counts   *counts
}

// run decides by the receipts what is left to do.
func (a *attempt) run(ctx context.Context) error {
	if sent := a.done(); sent != nil {
		a.counts.skipped.Add(1)
		a.finish(ctx, *sent)
		return nil
	}
	lead := a.lead()
	switch {
	case lead.final():
		return worker.Drop(nil)
	// the process was lost before the next stage was queued
	case lead.Stage > a.job.Stage && lead.Stage < len(a.job.Chain):
		return a.queueStage(ctx, lead.Stage)
	case lead.Status == Failed: // a dead letter that was replayed
		lead.First, lead.Attempts = time.Time{}, 0
	}
	switch a.delivery.Cause {
	case driver.CauseLeaseExpired, driver.CauseFailover, driver.CauseRebalance:
		a.counts.repeated.Add(1)
	}
	if a.job.Digest != nil {
		err := a.collect(ctx, *a.job.Digest, func(d *destination) *collection { return &d.Asked })
		if !errors.Is(err, ferry.ErrTooLarge) { // otherwise it is sent by itself
			return err
		}
	}
	return a.send(ctx)
}

// lead is the record that tells how far the job is: the first that is not final, if there is one.
func (a *attempt) lead() *kept {
	for i := range a.records {
		if !a.records[i].final() {
			return &a.records[i]
		}
	}
	return &a.records[0]
}

// done is a record that says that the job was sent, or nil. Of a digest one member with its id is enough: all were sent
// with it.
func (a *attempt) done() *kept {
	for i := range a.records {
		k := &a.records[i]
		if k.Status == Success && (len(a.job.Members) == 0 || k.Digest == a.job.ID) {
			return k
		}
	}
	return nil
}

// finish writes the receipts of a digest that was sent, should its process have been lost before it had written all.
func (a *attempt) finish(ctx context.Context, sent kept) {
	missing := false
	for i := range a.records {
		if k := &a.records[i]; k.Status != Success {
			k.Status, k.Code, k.Error, k.Attempts, missing = Success, "", "", sent.Attempts, true
			k.Reached, k.Digest = sent.Reached, sent.Digest
		}
	}
	if missing {
		a.put(ctx)
	}
}

// send sends what is left of the job, part by part.
func (a *attempt) send(ctx context.Context) error {
	t := a.job.target()
	c, err := a.hub.channel(t)
	if err != nil {
		return a.failed(ctx, err)
	}
	parts, format, err := c.Limits().shape(a.job.Body, a.job.Format)
	if err != nil {
		return a.failed(ctx, err)
	}
	var sent Sent
	lead := a.lead()
	for i := min(lead.Parts, len(parts)-1); i < len(parts); i++ {
		r := a.rendered(parts, i, format)
		wait, err := a.reserve(ctx, c, r)
		if err != nil {
			return a.hub.away(ctx, err)
		}
		if wait > 0 {
			return a.limited(ctx, c.Limits(), wait, len(parts))
		}
		if sent, err = a.sendPart(ctx, c, r); err != nil {
			return a.failed(ctx, err)
		}
		if i+1 < len(parts) {
			lead.Parts, lead.Status = i+1, Processing
			a.put(ctx)
		}
	}
	return a.succeeded(ctx, t, sent)
}

func (a *attempt) rendered(parts []string, i int, format Format) Rendered {
	j := a.job
	r := Rendered{ID: j.name(), To: j.target().To, Title: j.Title, Body: parts[i], Format: format, Priority: j.Priority,
		Part: i + 1, Parts: len(parts), Data: j.Data, Metadata: j.Metadata, Attachments: j.Attachments}
	if len(parts) > 1 {
		r.ID = fmt.Sprintf("%s/%d", r.ID, i+1)
	}
	return r
}

// sendPart calls the channel. A panic of it is an error.
func (a *attempt) sendPart(ctx context.Context, c Channel, r Rendered) (sent Sent, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.hub.o.Timeout)
	defer cancel()
	begin, lead := time.Now(), a.lead()
	if lead.First.IsZero() {
		lead.First = begin
	}
	defer func() {
		lead.Duration = time.Since(begin)
		if p := recover(); p != nil {
			err = &Error{Code: CodeUnknown, Text: fmt.Sprintf("the channel panicked: %v", p)}
		}
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = &Error{Code: CodeTimeout, Text: "the send took longer than " + a.hub.o.Timeout.String(), Cause: err}
		}
	}()
	return c.Send(ctx, r)
}

// succeeded records who was reached, then lets the job be acknowledged. Where the record is not taken the
// acknowledgement alone keeps the job from being sent again.
func (a *attempt) succeeded(ctx context.Context, t Target, sent Sent) error {
	for i := range a.records {
		k := &a.records[i]
		k.Status, k.Code, k.Error, k.Attempts = Success, "", "", k.Attempts+1
		k.Reached = &Reached{Channel: t.Channel, To: shown(t.To), MessageID: sent.ID}
		k.Digest = a.job.digestID()
	}
	a.counts.sent.Add(1)
	a.counts.last.Store(&Last{At: time.Now()})
	if !a.put(ctx) {
		a.counts.unrecorded.Add(1)
	}
	return nil
}

// lastWrite bounds what is written when the send has ended, and the handler's context may have.
const lastWrite = 5 * time.Second

// put writes the records that the job decides, and reports whether the broker took them all.
func (a *attempt) put(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	all := true
	for i, r := range a.job.references() {
		if k := &a.records[i]; k.final() && (k.Status == Cancelled || k.Digest != a.job.digestID()) {
			continue // it was called back, or sent otherwise, while its digest was under way
		}
		a.records[i].At = time.Now()
		revision, err := a.hub.records.put(ctx, r, a.complete(i))
		if err != nil {
			all = false
			a.hub.log.WarnContext(ctx, "a receipt of a notification is not kept", "id", r.ID, "target", r.Index,
				"error", err)
			continue
		}
		a.records[i].revision = revision
	}
	return all
}

// complete is a record with what it had lost, had it expired.
func (a *attempt) complete(i int) kept {
	k := a.records[i]
	if k.Channel == "" {
		k.Channel, k.To = a.job.Chain[0].Channel, shown(a.job.Chain[0].To)
	}
	return k
}

// failed decides whether the target is tried again, a fallback is, or nothing more.
func (a *attempt) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil { // the worker stops, or the lease is lost: the target comes again, and may have been reached
		a.counts.repeated.Add(1)
		return err
	}
	e, first := asError(err), a.lead().First
	a.counts.last.Store(&Last{At: time.Now(), Code: e.Code, Error: e.Error()})
	for k := range a.open() {
		k.Status, k.Code, k.Error, k.Attempts = Processing, e.Code, e.Error(), k.Attempts+1
		k.Digest = a.job.digestID()
	}
	if e.Code == CodeRateLimit && e.After > 0 {
		a.hub.holdBack(ctx, a.job.target(), e.After)
	}
	if a.again(e, first) {
		a.counts.retried.Add(1)
		a.put(ctx)
		if e.After > 0 {
			return worker.RetryAfter(e, e.After)
		}
		return worker.Transient(e)
	}
	if a.job.Stage+1 < len(a.job.Chain) {
		return a.fallBack(ctx, e)
	}
	return a.bury(ctx, e)
}

// open are the records that are not final.
func (a *attempt) open() iter.Seq[*kept] {
	return func(yield func(*kept) bool) {
		for i := range a.records {
			if k := &a.records[i]; !k.final() && !yield(k) {
				return
			}
		}
	}
}

// again reports whether another try may help.
func (a *attempt) again(e *Error, first time.Time) bool {
	r := a.job.Retry
	return e.Retryable() && a.delivery.Attempt < r.attempts() && (e.After > 0 || time.Since(first) < r.MaxElapsed)
}

// bury records the failure and leaves a dead letter.
func (a *attempt) bury(ctx context.Context, e *Error) error {
	for k := range a.open() {
		k.Status = Failed
	}
	a.counts.failed.Add(1)
	a.put(ctx)
	if e.Retryable() {
		return worker.Dead(driver.ReasonDownstream, e)
	}
	return worker.Dead(driver.ReasonRejected, e)
}

// fallBack goes on with the next target of the chain. The record comes first: a process that is lost between finds it.
func (a *attempt) fallBack(ctx context.Context, e *Error) error {
	t, next := a.job.target(), a.job.Stage+1
	for k := range a.open() {
		k.Tried = append(k.Tried, TriedTarget{Channel: t.Channel, To: shown(t.To), Code: e.Code, Error: e.Error()})
		k.Stage, k.Attempts, k.Parts, k.First = next, 0, 0, time.Time{}
	}
	a.counts.fellBack.Add(1)
	if !a.put(ctx) {
		return worker.Park(brokerAway)
	}
	return a.queueStage(ctx, next)
}

// queueStage queues a later target of the chain together with the acknowledgement of this one. Queued again it is a
// duplicate.
func (a *attempt) queueStage(ctx context.Context, stage int) error {
	next := *a.job
	next.Stage = stage
	return worker.Emit(ctx, a.hub.o.Topic, next, next.options()...)
}

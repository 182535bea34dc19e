package gateway

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// settlement ends one delivery, in JSON.
type settlement struct {
	Lease   string `json:"lease"`
	Outcome string `json:"outcome,omitempty" enum:"ack,retry,dead,release,drop"` // ack if it is left out
	// After is how long a retry or a released message waits. Without it a retry waits as its message says, or longer each
	// time.
	After  *jsontime.Duration `json:"after,omitempty"`
	Reason driver.Reason      `json:"reason,omitempty"`
	Error  string             `json:"error,omitempty"`
	Emit   []message          `json:"emit,omitempty"`
	// Result is what the handler returned, for who waits for it. It goes with an ack.
	Result *returned `json:"result,omitempty"`
}

// settleRequest is the body of a settle, and settled its answer.
type settleRequest struct {
	Settle []settlement `json:"settle"`
}

type settled struct {
	Settled []outcome `json:"settled"`
}

// extendRequest is the body of an extend, and extended its answer.
type extendRequest struct {
	Leases []string `json:"leases"`
}

type extended struct {
	Extended []outcome `json:"extended"`
}

// outcome is what became of one settlement or extension.
type outcome struct {
	OK    bool     `json:"ok"`
	Error *problem `json:"error,omitempty"`
}

// serveSettle ends deliveries.
func (g *Gateway) serveSettle(w http.ResponseWriter, r *http.Request) {
	var q settleRequest
	body, err := g.body(r)
	if err == nil {
		err = strict(body, &q, "the body")
	}
	if err != nil {
		refuse(w, r, err)
		return
	}
	answer(w, http.StatusOK, settled{g.settleAll(r.Context(), q.Settle)})
}

// settleAll applies settlements in their order, and tells of each what became of it.
func (g *Gateway) settleAll(ctx context.Context, ss []settlement) []outcome {
	out, hs := make([]outcome, len(ss)), make([]leaseHandle, len(ss))
	for i := range ss {
		hs[i] = g.leases.parse(ss[i].Lease)
	}
	for begin := 0; begin < len(ss); {
		end := begin + 1
		for end < len(ss) && hs[begin].err == nil && hs[end].err == nil && hs[end].session == hs[begin].session {
			end++
		}
		g.settleSome(ctx, ss[begin:end], hs[begin:end], out[begin:end])
		begin = end
	}
	return out
}

// settleSome applies settlements of one session.
func (g *Gateway) settleSome(ctx context.Context, ss []settlement, hs []leaseHandle, out []outcome) {
	s, free, err := g.holder(ctx, hs[0])
	if err != nil {
		for i := range out {
			out[i] = outcomeOf(ctx, err)
		}
		return
	}
	defer free()
	ds := s.deliveries(numbers(hs))
	xs, errs := make([]driver.Settlement, len(ss)), make([]error, len(ss))
	for i, d := range ds {
		xs[i], errs[i] = g.whole(ctx, ss[i], d)
	}
	g.keepResults(ctx, ss, ds, errs)
	var handles []uint64
	var settlements []driver.Settlement
	var at []int
	for i, err := range errs {
		if err != nil {
			out[i] = outcomeOf(ctx, err)
			continue
		}
		handles, settlements, at = append(handles, hs[i].n), append(settlements, xs[i]), append(at, i)
	}
	if len(at) == 0 {
		return
	}
	for i, err := range s.settle(ctx, handles, settlements) {
		out[at[i]] = outcomeOf(ctx, err)
	}
}

// numbers are what handles are in their session.
func numbers(hs []leaseHandle) []uint64 {
	out := make([]uint64, len(hs))
	for i, h := range hs {
		out[i] = h.n
	}
	return out
}

func outcomeOf(ctx context.Context, err error) outcome {
	if err != nil {
		return outcome{Error: problemOf(ctx, err)}
	}
	return outcome{OK: true}
}

// holder returns the session of a handle, for who opened it. One that has ended holds nothing.
func (g *Gateway) holder(ctx context.Context, h leaseHandle) (*session, func(), error) {
	if h.err != nil {
		return nil, nil, h.err
	}
	s, free, err := g.sessions.use(h.session, auth.From(ctx).String())
	if err != nil {
		return nil, nil, errNotHeld()
	}
	if err := may(ctx, auth.Consume, s.o.Topic); err != nil {
		free()
		return nil, nil, err
	}
	return s, free, nil
}

// whole returns the settlement of a delivery, with what its message and the defaults say. A delivery that is not held
// is nil.
func (g *Gateway) whole(ctx context.Context, in settlement, d *driver.Delivery) (driver.Settlement, error) {
	if d == nil {
		return driver.Settlement{}, errNotHeld()
	}
	s := driver.Settlement{Delivery: d}
	found := in.Outcome == ""
	for o := driver.Ack; o <= driver.Drop; o++ {
		if o.String() == in.Outcome {
			s.Outcome, found = o, true
		}
	}
	if !found {
		return s, invalid(fmt.Sprintf("there is no outcome %.40q", in.Outcome), "use ack, retry, dead, release or drop", nil)
	}
	if in.After != nil {
		s.After = time.Duration(*in.After)
	}
	if in.Result != nil && s.Outcome != driver.Ack {
		return s, invalid("only a message that is acknowledged has a result", "leave the result out, or the outcome", nil)
	}
	switch s.Outcome {
	case driver.Retry:
		in.retry(&s)
	case driver.Dead:
		s.Failure = in.failure(driver.ReasonRejected)
	}
	var err error
	s.Emit, err = g.follow(ctx, in, d)
	return s, err
}

// retry fills in when a message is tried again, or that it is not.
func (in settlement) retry(s *driver.Settlement) {
	d := s.Delivery
	s.Failure = in.failure(driver.ReasonDownstream)
	more := d.Attempt < cmp.Or(d.MaxAttempts, maxAttempts)
	if in.After == nil && more {
		policy := driver.RetryPolicy{Base: time.Second}
		if d.Retry != nil {
			policy = *d.Retry
		}
		s.After, more = policy.Next(d.Attempt, d.ID, time.Since(d.PublishedAt))
	}
	if !more {
		s.Outcome, s.After, s.Failure.Reason = driver.Dead, 0, driver.ReasonMaxAttempts
	}
}

func (in settlement) failure(reason driver.Reason) *driver.Failure {
	return &driver.Failure{Reason: cmp.Or(in.Reason, reason), Error: cmp.Or(in.Error, "the consumer gave no reason")}
}

// follow returns the follow-ups of a settlement. One without an id has the one that a worker would give it.
func (g *Gateway) follow(ctx context.Context, in settlement, d *driver.Delivery) ([]*driver.Message, error) {
	var out []*driver.Message
	for i, m := range in.Emit {
		if err := driver.CheckTopic(m.Topic); err != nil {
			return nil, err
		}
		if err := may(ctx, auth.Publish, m.Topic); err != nil {
			return nil, err
		}
		next, err := m.whole(m.Topic)
		if err != nil {
			return nil, err
		}
		if next.ID == "" {
			next.ID, next.OwnID = driver.EmitID(d.Topic+"/"+d.Group+"/"+d.ID, i), true
		}
		if err := g.prepare(ctx, next); err != nil {
			return nil, err
		}
		out = append(out, next)
	}
	return out, nil
}

// serveExtend makes leases last one full lease from now.
func (g *Gateway) serveExtend(w http.ResponseWriter, r *http.Request) {
	var q extendRequest
	body, err := g.body(r)
	if err == nil {
		err = strict(body, &q, "the body")
	}
	if err != nil {
		refuse(w, r, err)
		return
	}
	out, hs := make([]outcome, len(q.Leases)), make([]leaseHandle, len(q.Leases))
	bySession := map[string][]int{}
	for i, lease := range q.Leases {
		if hs[i] = g.leases.parse(lease); hs[i].err != nil {
			out[i] = outcomeOf(r.Context(), hs[i].err)
			continue
		}
		bySession[hs[i].session] = append(bySession[hs[i].session], i)
	}
	for _, at := range bySession {
		g.extendSome(r.Context(), hs, at, out)
	}
	answer(w, http.StatusOK, extended{out})
}

// extendSome extends leases of one session.
func (g *Gateway) extendSome(ctx context.Context, hs []leaseHandle, at []int, out []outcome) {
	s, free, err := g.holder(ctx, hs[at[0]])
	if err != nil {
		for _, i := range at {
			out[i] = outcomeOf(ctx, err)
		}
		return
	}
	defer free()
	var handles []uint64
	for _, i := range at {
		handles = append(handles, hs[i].n)
	}
	for i, err := range s.extend(ctx, handles) {
		out[at[i]] = outcomeOf(ctx, err)
	}
}

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// Bounds and defaults of a receive.
const (
	defaultMax  = 10
	mostMax     = 1000
	defaultWait = 10 * time.Second
	leastWait   = 100 * time.Millisecond // long enough to look
	mostHeld    = 100_000                // by requests that share a session
)

// What a worker does by default, and a client in another language, too.
const (
	maxAttempts   = 10
	maxDeliveries = 5
)

// receiveRequest is the body of a receive. All of it may be left out.
type receiveRequest struct {
	Max    int                `json:"max,omitempty"`
	Wait   *jsontime.Duration `json:"wait,omitempty"`
	Lease  jsontime.Duration  `json:"lease,omitempty"`
	Settle []settlement       `json:"settle,omitempty"`
	// Events asks for one message as a CloudEvent of HTTP, in this mode.
	Events string `json:"events,omitempty" enum:"binary,structured"`
}

// received is the answer to a receive.
type received struct {
	Messages []delivery `json:"messages"`
	Settled  []outcome  `json:"settled,omitempty"`
	// Error is why there are no messages, after something was settled.
	Error *problem `json:"error,omitempty"`
}

func (q *receiveRequest) check(poll time.Duration) error {
	if err := q.checkEvents(); err != nil {
		return err
	}
	if q.Max == 0 {
		q.Max = defaultMax
	}
	if q.Wait == nil {
		wait := jsontime.Duration(min(defaultWait, poll))
		q.Wait = &wait
	}
	if q.Max < 1 || q.Max > mostMax {
		return invalid(fmt.Sprintf("max is %d", q.Max), fmt.Sprintf("ask for 1 to %d", mostMax), nil)
	}
	if err := checkLease(time.Duration(q.Lease)); err != nil {
		return err
	}
	if wait := time.Duration(*q.Wait); wait < 0 || wait > poll {
		return invalid(fmt.Sprintf("wait is %v", wait), fmt.Sprintf("wait at most %v, and ask again", poll), nil)
	}
	return nil
}

// checkEvents refuses what a single event has no place for.
func (q *receiveRequest) checkEvents() error {
	switch {
	case q.Events == "":
		return nil
	case q.Events != binaryEvents && q.Events != structuredEvents:
		return invalid(fmt.Sprintf("there is no mode %.40q of events", q.Events), "use binary or structured", nil)
	case q.Max > 1:
		return invalid("an event of HTTP is one message", "leave max out, or accept "+eventBatchType, nil)
	case len(q.Settle) > 0:
		return errNoPlace()
	}
	q.Max = 1
	return nil
}

func errNoPlace() error {
	return invalid("events have no place for what became of settlements",
		"settle with /v1/settle, or accept application/json", nil)
}

// checkLease refuses a lease that no broker gives. Zero is the one that the broker recommends.
func checkLease(lease time.Duration) error {
	if lease < 0 {
		return invalid(fmt.Sprintf("the lease is %v", lease), "ask for 30s for example, or leave it out", nil)
	}
	return nil
}

// serveReceive settles, and then waits for deliveries.
func (g *Gateway) serveReceive(w http.ResponseWriter, r *http.Request) {
	var q receiveRequest
	body, err := g.body(r)
	if err == nil && len(body) > 0 {
		err = strict(body, &q, "the body")
	}
	if err == nil {
		err = errors.Join(q.check(g.o.Poll), mayReceive(r))
	}
	if err != nil {
		refuse(w, r, err)
		return
	}
	if wantsEvents(r) && len(q.Settle) > 0 {
		refuse(w, r, errNoPlace())
		return
	}
	settled := g.settleAll(r.Context(), q.Settle)
	messages, err := g.receiveFor(r, q)
	if err != nil && len(settled) == 0 {
		refuse(w, r, err)
		return
	}
	switch {
	case q.Events != "":
		answerEvent(r.Context(), w, messages, q.Events)
		return
	case wantsEvents(r):
		answerEvents(r.Context(), w, messages)
		return
	}
	out := received{Messages: messages, Settled: settled}
	if err != nil { // what was settled must be told
		out.Messages, out.Error = []delivery{}, problemOf(r.Context(), err)
	}
	w.Header().Set("Content-Type", jsonType)
	_, _ = w.Write(appendReceived(nil, out)) // who has gone is not told
}

// mayReceive is for who asks for deliveries. Topics of Ferry's own are for Go programs, which have them over frames.
func mayReceive(r *http.Request) error {
	topic := r.PathValue("topic")
	return errors.Join(driver.CheckTopic(topic), may(r.Context(), auth.Consume, topic))
}

// receiveFor waits for deliveries of the session that requests like this one share.
func (g *Gateway) receiveFor(r *http.Request, q receiveRequest) ([]delivery, error) {
	o := g.subscription(r, time.Duration(q.Lease))
	o.MaxInflight = mostHeld
	s, free, err := g.sessions.share(r.Context(), g.driver, auth.From(r.Context()).String(), o)
	if err != nil {
		return nil, err
	}
	defer free()
	ctx, cancel := g.waiting(r.Context(), max(time.Duration(*q.Wait), leastWait))
	defer cancel()
	ds, err := s.sub.Receive(ctx, q.Max)
	switch {
	case err != nil && ctx.Err() != nil:
		return []delivery{}, nil
	case err != nil:
		return nil, err
	case r.Context().Err() != nil:
		s.giveBack(r.Context(), ds)
		return nil, r.Context().Err()
	}
	return g.hand(r.Context(), s, ds), nil
}

// subscription is what a request for deliveries subscribes to.
func (g *Gateway) subscription(r *http.Request, lease time.Duration) driver.SubscribeOptions {
	return driver.SubscribeOptions{
		Topic: r.PathValue("topic"), Group: r.PathValue("group"), Lease: lease,
		Instance: auth.From(r.Context()).Name + "@" + g.leases.node,
	}
}

// giveBack releases what nobody has seen.
func (s *session) giveBack(ctx context.Context, ds []*driver.Delivery) {
	ss := make([]driver.Settlement, len(ds))
	for i, d := range ds {
		ss[i] = driver.Settlement{Delivery: d, Outcome: driver.Release, Unseen: true}
	}
	s.sub.Settle(context.WithoutCancel(ctx), ss) // what it does not take runs out
}

// hand gives deliveries to a client. One that has cost too many clients becomes a dead letter instead.
func (g *Gateway) hand(ctx context.Context, s *session, ds []*driver.Delivery) []delivery {
	ds, plain := g.plain(ctx, s, s.begun(ctx, ds))
	s.mu.Lock()
	first := s.hold(ds)
	s.mu.Unlock()
	out := make([]delivery, len(ds))
	for i, d := range ds {
		out[i] = shown(plain[i], g.leases.handle(s.id, first+uint64(i)), time.Until(d.LeaseUntil))
	}
	return out
}

// begun returns the deliveries that may be handled. Of those that were lost before it is noted that they begin.
func (s *session) begun(ctx context.Context, ds []*driver.Delivery) []*driver.Delivery {
	var fresh, again []*driver.Delivery
	for _, d := range ds {
		switch {
		case d.Deliveries > maxDeliveries:
			s.bury(ctx, d)
		case d.Deliveries > 1:
			again = append(again, d)
		default:
			fresh = append(fresh, d)
		}
	}
	if len(again) > 0 {
		for i, err := range s.sub.Begin(ctx, again) {
			if err == nil {
				fresh = append(fresh, again[i])
			}
		}
	}
	return fresh
}

// bury makes a delivery a dead letter that was lost too often. If the broker does not take it, it comes again.
func (s *session) bury(ctx context.Context, d *driver.Delivery) {
	f := &driver.Failure{Reason: driver.ReasonMaxDeliveries,
		Error: fmt.Sprintf("%d consumers received it and were not heard of again", maxDeliveries)}
	s.sub.Settle(context.WithoutCancel(ctx), []driver.Settlement{{Delivery: d, Outcome: driver.Dead, Failure: f}})
}

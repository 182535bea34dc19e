package guard

import "github.com/ferrymq/ferry/worker"

// Layers are the guards of one handler; any may be nil. Middleware is the one place that knows their order. Another
// order is a list of their Middleware()s.
type Layers struct {
	Limit       *Limiter
	Concurrency *Concurrency
	Dedup       *Dedup
	Breaker     *Breaker
}

// Middleware returns the layers in order, for worker.Use or Worker.Use:
//
//	limit → concurrency → dedup → breaker → handler
//
// What costs least and protects most comes first: a message over its limit takes no slot; one without a slot does not
// begin its work; a duplicate never reaches the breaker, so that it cannot be one of its probes. What a limit counted
// is given back when a later layer refuses the message. The handler's timeout is worker.Timeout, around all of them.
func (l Layers) Middleware() []worker.Middleware {
	var all []worker.Middleware
	if l.Limit != nil {
		all = append(all, l.Limit.Middleware())
	}
	if l.Concurrency != nil {
		all = append(all, l.Concurrency.Middleware())
	}
	if l.Dedup != nil {
		all = append(all, l.Dedup.Middleware())
	}
	if l.Breaker != nil {
		all = append(all, l.Breaker.Middleware())
	}
	return all
}

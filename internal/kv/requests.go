package kv

import (
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// requests are the writes that were applied under a request, for as long as they may be repeated.
type requests struct {
	known map[string]answer
	order []string // oldest first
}

type answer struct {
	value driver.Value
	until time.Time
}

func (r *requests) find(request string, now time.Time) (driver.Value, bool) {
	a, ok := r.known[request]
	return a.value, ok && now.Before(a.until)
}

func (r *requests) add(request string, v driver.Value, now time.Time) {
	if r.known == nil {
		r.known = map[string]answer{}
	}
	r.known[request] = answer{v, now.Add(driver.RequestFor)}
	r.order = append(r.order, request)
}

// dropNewest takes the last that was added out again.
func (r *requests) dropNewest() {
	last := len(r.order) - 1
	delete(r.known, r.order[last])
	r.order = r.order[:last]
}

// forget drops those whose time is over, and returns them.
func (r *requests) forget(now time.Time) (gone []string) {
	n := 0
	for n < len(r.order) && !now.Before(r.known[r.order[n]].until) {
		delete(r.known, r.order[n])
		n++
	}
	gone = r.order[:n:n]
	r.order = r.order[n:]
	return gone
}

// renew gives each its whole time again.
func (r *requests) renew(now time.Time) {
	for request, a := range r.known {
		a.until = now.Add(driver.RequestFor)
		r.known[request] = a
	}
}

// next is when forget has something to do; zero: never.
func (r *requests) next() time.Time {
	if len(r.order) == 0 {
		return time.Time{}
	}
	return r.known[r.order[0]].until
}

// restore adds one that was stored; arrange is called when all are there.
func (r *requests) restore(request string, a answer) {
	if r.known == nil {
		r.known = map[string]answer{}
	}
	r.known[request] = a
	r.order = append(r.order, request)
}

func (r *requests) arrange() {
	slices.SortFunc(r.order, func(a, b string) int { return r.known[a].until.Compare(r.known[b].until) })
}

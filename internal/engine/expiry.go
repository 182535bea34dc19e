package engine

import (
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/container"
)

// expire removes a message past its TTL from every group that does not run it. One that runs may finish; if it comes
// back it expires then.
func (t *topic) expire(e *entry, now moment) {
	t.unwatchExpiry(e)
	if e.state != fanned {
		t.expireEarly(e, now)
		return
	}
	for it := range e.all() {
		if it.state == ready || it.state == waiting {
			it.g.expire(it, now)
		}
	}
}

// watchExpiry has a message expire in time.
func (t *topic) watchExpiry(e *entry) {
	if x := e.expiry; x != nil && x.at != never && x.heapAt == container.Nowhere {
		t.expires.Push(x.at, e.seq, e)
	}
}

// unwatchExpiry is the opposite of watchExpiry.
func (t *topic) unwatchExpiry(e *entry) {
	if x := e.expiry; x != nil && x.heapAt != container.Nowhere {
		t.expires.RemoveAt(x.heapAt)
	}
}

// expireEarly ends a message that expired before it was due. A dead letter of it goes to every group.
func (t *topic) expireEarly(e *entry, now moment) {
	t.takeOut(e)
	t.stats.Expired++
	e.state, e.fan, e.due = fanned, t.nextPlace(), now.tick
	if t.config.ExpiredDead {
		for _, g := range t.groups {
			it := e.newItem(g)
			g.stats.Received++
			g.bury(it, expired(), "", now)
		}
	}
	t.lose(e)
	t.conclude(e, now)
}

// expire ends an item past its TTL: discarded, or a dead letter.
func (g *group) expire(it *item, now moment) {
	if g.t.config.ExpiredDead {
		g.bury(it, expired(), "", now)
		return
	}
	g.stats.Expired++
	g.finish(it, gone, now)
}

func expired() *driver.Failure {
	return &driver.Failure{Reason: driver.ReasonExpired, Error: "expired before it was handled"}
}

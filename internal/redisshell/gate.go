package redisshell

import (
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Gate says whether a subscription may claim now: it still receives, it has room, and there may be something to claim.
// It is guarded by the lock of its subscription.
type Gate struct {
	most     int             // deliveries that may be held at once
	reserved int             // room that claims under way may fill
	starved  bool            // somebody found no room
	draining bool            // nothing more is received
	closed   bool            // nothing more is settled either
	news     chan struct{}   // closed when there may be something to claim
	emptied  <-chan struct{} // the news when a claim was sent that left nothing to claim
}

// NewGate returns one for a subscription that may hold so many deliveries.
func NewGate(most int) Gate { return Gate{most: most, news: make(chan struct{})} }

// Refuse says why nothing can be received any more, or nil.
func (g *Gate) Refuse() error { return refusal.Receive(g.closed, g.draining) }

// RefuseSettle says why nothing can be settled any more, or nil.
func (g *Gate) RefuseSettle() error {
	if !g.closed {
		return nil
	}
	return driver.NewError(driver.ErrClosed, "the subscription is closed", "what was held is delivered again",
		driver.ErrLeaseLost)
}

// Receives reports whether deliveries are still received.
func (g *Gate) Receives() bool { return !g.draining && !g.closed }

// Closed reports whether the subscription is closed.
func (g *Gate) Closed() bool { return g.closed }

// Drain ends receiving, and wakes whoever waits. It reports whether that is new.
func (g *Gate) Drain() bool {
	fresh := g.Receives()
	g.draining = true
	g.Announce()
	return fresh
}

// Close ends settling, too. It reports whether that is new.
func (g *Gate) Close() bool {
	fresh := !g.closed
	g.closed = true
	g.Announce()
	return fresh
}

// Left is how many more deliveries there is room for while so many are held. Claims under way count as if they brought
// all they may.
func (g *Gate) Left(held int) int { return g.most - held - g.reserved }

// Room is how many of the deliveries that somebody wants may be claimed now, while so many are held. None if the last
// claim left nothing and nothing was announced since.
func (g *Gate) Room(want, held int) int {
	left := g.Left(held)
	g.starved = g.starved || left <= 0
	if g.emptied == g.news {
		return 0
	}
	return max(0, min(want, left))
}

// Reserve keeps room for a claim under way, until Free.
func (g *Gate) Reserve(n int) { g.reserved += n }

// Free gives room back that a claim had.
func (g *Gate) Free(n int) { g.reserved -= n }

// Fed reports whether somebody found no room since it was last asked: after a settlement there is some.
func (g *Gate) Fed() bool {
	starved := g.starved
	g.starved = false
	return starved
}

// News is closed by the next announcement.
func (g *Gate) News() <-chan struct{} { return g.news }

// Announce tells those who wait for news that there may be something to claim.
func (g *Gate) Announce() {
	close(g.news)
	g.news = make(chan struct{})
}

// Emptied notes that a claim, sent when there was this news, left nothing to claim.
func (g *Gate) Emptied(news <-chan struct{}) { g.emptied = news }

// Refilled notes that something may have become free to claim, without waking anybody.
func (g *Gate) Refilled() { g.emptied = nil }

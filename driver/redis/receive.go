package redis

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// inlineMost is up to how many messages the script of a claim brings the bodies itself: there they cost more, but for
// few a second round trip costs more than that.
const inlineMost = 8

// claimPatience bounds one claim, whose caller may have given up.
const claimPatience = 30 * time.Second

// claimMost bounds one script.
const claimMost = 500

// Receive waits until it can return at least one delivery, and returns at most max.
func (s *subscription) Receive(ctx context.Context, max int) ([]*driver.Delivery, error) {
	if err := driver.CheckMax(max); err != nil {
		return nil, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		stray, extra, p, news, err := s.reserve(max)
		s.unclaim(ctx, extra)
		if err != nil || len(stray) > 0 {
			return stray, err
		}
		if p.reserved() > 0 {
			if ds, err := s.claimFor(ctx, p); len(ds) > 0 || err != nil {
				return ds, err
			}
		}
		j, err := s.await(ctx, max, news)
		if err != nil {
			return nil, err
		}
		if j != nil {
			if ds, err := s.claimFor(ctx, plan{most: max, room: j.most, attached: j, news: j.news}); len(ds) > 0 || err != nil {
				return ds, err
			}
		}
	}
}

// plan is one claim under way.
type plan struct {
	most     int             // deliveries that the caller takes
	room     int             // for new ones
	again    []claimRequest  // claims that may have taken effect: they come first
	attached *attachedClaim  // it is under way with a settlement
	news     <-chan struct{} // when it was made
}

// reserved is how many deliveries a plan may bring.
func (p plan) reserved() int {
	n := p.room
	for _, l := range p.again {
		n += l.most
	}
	return n
}

// reserve returns what an earlier claim brought for nobody, with releases of what cannot be returned, or makes room for
// a claim.
func (s *subscription) reserve(most int) (stray []*driver.Delivery, extra []*driver.Delivery, p plan,
	news <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.gate.Refuse(); err != nil {
		return nil, nil, p, nil, err
	}
	if stray, extra = s.takeStray(most); len(stray)+len(extra) > 0 {
		return stray, extra, p, closedNews, nil
	}
	if s.abandoned > 0 { // its claim comes first, so that order is kept
		return nil, nil, p, s.gate.News(), nil
	}
	if s.gate.Left(len(s.held)) <= 0 {
		s.dropEnded()
	}
	p.most, p.news, p.again, s.unknown = most, s.gate.News(), s.unknown, nil
	p.room = s.gate.Room(min(most, claimMost), len(s.held)+p.reserved())
	if n := p.reserved(); n > 0 {
		s.gate.Reserve(n)
		s.claims.Add(1)
	}
	return nil, nil, p, p.news, nil
}

// closedNews lets a caller go on at once.
var closedNews = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// takeStray takes what is still held of what a cancelled claim brought. A run is never spread over two calls of
// Receive: a settlement that returns the rest of it could cross the second one. What does not fit of it is released.
// The caller has the lock.
func (s *subscription) takeStray(most int) (stray []*driver.Delivery, extra []*driver.Delivery) {
	keys := map[string]bool{}
	rest := s.stray[:0:0]
	now := time.Now()
	for _, d := range s.stray {
		t := d.Token.(*token)
		switch {
		case !s.held[t] || now.After(t.until):
		case expired(d, now):
			extra = append(extra, d)
		case len(stray) < most:
			stray = append(stray, d)
			keys[d.Key] = d.Key != ""
		case keys[d.Key]:
			extra = append(extra, d)
		default:
			rest = append(rest, d)
		}
	}
	s.stray = rest
	return stray, extra
}

// dropEnded forgets deliveries whose leases have ended by our clock. The caller has the lock.
func (s *subscription) dropEnded() {
	now := time.Now()
	for t := range s.held {
		if now.After(t.until) {
			delete(s.held, t)
		}
	}
}

// claimFor claims into reserved room. If ctx ends meanwhile, what is claimed is kept for the next Receive.
func (s *subscription) claimFor(ctx context.Context, p plan) ([]*driver.Delivery, error) {
	type result struct {
		ds  []*driver.Delivery
		err error
	}
	done := make(chan result, 1)
	abandoned := make(chan struct{})
	go func() {
		defer s.claims.Done()
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimPatience)
		defer cancel()
		ds, err := s.claim(detached, p)
		s.mu.Lock()
		s.gate.Free(p.reserved())
		select {
		case <-abandoned:
			s.abandoned--
			s.stray = append(s.stray, ds...)
			s.gate.Announce()
		default:
			done <- result{ds, err}
		}
		s.mu.Unlock()
	}()
	select {
	case r := <-done:
		return r.ds, r.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case r := <-done:
		return r.ds, r.err
	default:
		close(abandoned)
		s.abandoned++
		return nil, ctx.Err()
	}
}

// claim asks again for what may have been claimed, and otherwise takes from the shards in turn.
func (s *subscription) claim(ctx context.Context, p plan) ([]*driver.Delivery, error) {
	if j := p.attached; j != nil {
		b, err := s.claimFrom(ctx, j.claimRequest, j)
		if err == nil && (len(s.keys) == 1 || !b.short) {
			s.leftNothing(b.short, p)
		}
		return b.ds, err
	}
	if ds, err := s.recover(ctx, p); len(ds) > 0 || err != nil {
		return ds, err
	}
	s.mu.Lock()
	s.turn++
	turn := s.turn
	s.mu.Unlock()
	var all []*driver.Delivery
	short := p.room > 0
	for i := range s.keys {
		if len(all) >= p.room {
			break
		}
		b, err := s.claimFrom(ctx, claimRequest{(turn + i) % len(s.keys), s.d.shell.NewToken(), p.room - len(all)}, nil)
		all = append(all, b.ds...)
		if err != nil {
			return all, unlessSome(all, err)
		}
		short = short && b.short
	}
	s.leftNothing(short, p)
	return all, nil
}

// leftNothing notes whether a claim has taken all there was. Then there is nothing more to claim until the next
// announcement.
func (s *subscription) leftNothing(is bool, p plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate.Refilled(); is {
		s.gate.Emptied(p.news)
	}
}

// recover asks again for claims whose answer did not come, and returns as much of them as the caller takes.
func (s *subscription) recover(ctx context.Context, p plan) ([]*driver.Delivery, error) {
	if len(p.again) == 0 {
		return nil, nil
	}
	var found []*driver.Delivery
	var err error
	for i, l := range p.again {
		var b *batch
		b, err = s.claimFrom(ctx, l, nil)
		found = append(found, b.ds...)
		if err != nil {
			s.mu.Lock()
			if !slices.Contains(s.unknown, l) { // or claimFrom has noted it
				s.unknown = append(s.unknown, l)
			}
			s.unknown = append(s.unknown, p.again[i+1:]...)
			s.mu.Unlock()
			break
		}
	}
	s.mu.Lock()
	s.stray = append(s.stray, found...)
	ds, extra := s.takeStray(p.most)
	s.mu.Unlock()
	s.unclaim(ctx, extra)
	return ds, unlessSome(ds, err)
}

// unlessSome drops the error of one shard when another one brought something: it comes again.
func unlessSome(ds []*driver.Delivery, err error) error {
	if len(ds) > 0 {
		return nil
	}
	return err
}

// claimTries bounds how often a claim is repeated because its answer took too long.
const claimTries = 3

// claimFrom makes one lease of one shard. Leases are reckoned from before the request; one whose answer comes late is
// asked for again, and the script renews it, without what has expired. The first time it may be under way with a
// settlement.
func (s *subscription) claimFrom(ctx context.Context, a claimRequest, j *attachedClaim) (*batch, error) {
	for try := 1; ; try++ {
		b := &batch{s: s, claimRequest: a, before: time.Now()}
		err := b.claim(ctx, j)
		j = nil
		b.short = b.short && try == 1 // a renewed lease tells nothing of the rest
		if err == nil && len(b.ds) > 0 && b.late() {
			if try < claimTries {
				continue
			}
			if time.Since(b.before) > s.o.Lease {
				err = driver.NewError(driver.ErrUnknown, "the server takes longer to answer than a lease lasts",
					"use longer leases", nil)
				b.claimed = true
			}
		}
		if err != nil {
			if b.claimed || errors.Is(err, driver.ErrUnknown) {
				s.mu.Lock()
				s.unknown = append(s.unknown, a)
				s.mu.Unlock()
			}
			return &batch{}, err
		}
		b.keep()
		if len(b.ds) > 0 || b.dropped == 0 {
			return b, nil
		}
		a.token = s.d.shell.NewToken() // nothing of it can be delivered
	}
}

// expired reports whether a message with a TTL, which had not expired when it was claimed, has meanwhile. One whose TTL
// was lifted had.
func expired(d *driver.Delivery, now time.Time) bool {
	if d.TTL == 0 {
		return false
	}
	t := d.Token.(*token)
	left := d.PublishedAt.Add(d.TTL).Sub(d.ClaimedAt)
	return left > 0 && now.Sub(t.claimed) > left
}

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
		p, err := s.reserve(max)
		s.unclaim(ctx, p.extra)
		if err != nil || len(p.unseen) > 0 {
			return p.unseen, err
		}
		if len(p.extra) > 0 {
			continue
		}
		if p.reserved() > 0 {
			if ds, err := s.claimFor(ctx, p); len(ds) > 0 || err != nil {
				return ds, err
			}
		}
		j, err := s.await(ctx, max, p.news)
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

// plan is one claim under way, or what an earlier one brought for nobody.
type plan struct {
	unseen   []*driver.Delivery // are returned
	extra    []*driver.Delivery // cannot be returned
	most     int                // deliveries that the caller takes
	room     int                // for new ones
	again    []claimRequest     // claims that may have taken effect: they come first
	attached *attachedClaim     // it is under way with a settlement
	news     <-chan struct{}    // when it was made
}

// reserved is how many deliveries a plan may bring.
func (p plan) reserved() int {
	n := p.room
	for _, l := range p.again {
		n += l.most
	}
	return n
}

// reserve returns what an earlier claim brought for nobody, or makes room for a claim.
func (s *subscription) reserve(most int) (p plan, err error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if err := s.Gate.Refuse(); err != nil {
		return p, err
	}
	p.most, p.news = most, s.Gate.News()
	p.unseen, p.extra = s.takeUnseen(most)
	if len(p.unseen)+len(p.extra) > 0 || s.abandoned > 0 { // the claim of who gave up comes first, so that order is kept
		return p, nil
	}
	s.DropEnded()
	p.again, s.unknown = s.unknown, nil
	p.room = s.Gate.Room(min(most, claimMost), len(s.Held)+p.reserved())
	if n := p.reserved(); n > 0 {
		s.Gate.Reserve(n)
		s.claims.Add(1)
	}
	return p, nil
}

// takeUnseen takes what is still held of what a cancelled claim brought. A run is never spread over two calls of
// Receive: a settlement that returns the rest of it could cross the second one. What does not fit of it is released.
// The caller has the lock.
func (s *subscription) takeUnseen(most int) (unseen []*driver.Delivery, extra []*driver.Delivery) {
	keys := map[string]bool{}
	rest := s.unseen[:0:0]
	now := time.Now()
	for _, d := range s.unseen {
		t := d.Token.(*token)
		switch {
		case !s.Held[t] || now.After(t.until):
		case expired(d, now):
			extra = append(extra, d)
		case len(unseen) < most:
			unseen = append(unseen, d)
			keys[d.Key] = d.Key != ""
		case keys[d.Key]:
			extra = append(extra, d)
		default:
			rest = append(rest, d)
		}
	}
	s.unseen = rest
	return unseen, extra
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
		ds, err := s.claimInTurn(detached, p)
		s.Mu.Lock()
		s.Gate.Free(p.reserved())
		select {
		case <-abandoned:
			s.abandoned--
			s.unseen = append(s.unseen, ds...)
			s.Gate.Announce()
		default:
			done <- result{ds, err}
		}
		s.Mu.Unlock()
	}()
	select {
	case r := <-done:
		return r.ds, r.err
	case <-ctx.Done():
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	select {
	case r := <-done:
		return r.ds, r.err
	default:
		close(abandoned)
		s.abandoned++
		return nil, ctx.Err()
	}
}

// claimInTurn claims when that is its turn. What is under way with a settlement takes no connection of its own.
func (s *subscription) claimInTurn(ctx context.Context, p plan) ([]*driver.Delivery, error) {
	if p.attached == nil {
		if err := s.d.shell.Claims.Take(ctx); err != nil {
			s.Mu.Lock()
			s.unknown = append(s.unknown, p.again...)
			s.Mu.Unlock()
			return nil, err
		}
		defer s.d.shell.Claims.GiveBack()
	}
	return s.claim(ctx, p)
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
	s.Mu.Lock()
	s.turn++
	turn := s.turn
	s.Mu.Unlock()
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
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Gate.Refilled(); is {
		s.Gate.Emptied(p.news)
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
			s.Mu.Lock()
			if !slices.Contains(s.unknown, l) { // or claimFrom has noted it
				s.unknown = append(s.unknown, l)
			}
			s.unknown = append(s.unknown, p.again[i+1:]...)
			s.Mu.Unlock()
			break
		}
	}
	s.Mu.Lock()
	s.unseen = append(s.unseen, found...)
	ds, extra := s.takeUnseen(p.most)
	s.Mu.Unlock()
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
			if time.Since(b.before) > s.Options.Lease {
				err = driver.NewError(driver.ErrUnknown, "the server takes longer to answer than a lease lasts",
					"use longer leases", nil)
				b.claimed = true
			}
		}
		if err != nil {
			if b.claimed || errors.Is(err, driver.ErrUnknown) {
				s.Mu.Lock()
				s.unknown = append(s.unknown, a)
				s.Mu.Unlock()
			}
			return &batch{}, err
		}
		s.Hold(b.ds)
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

package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// inlineMost is up to how many messages a claim brings the bodies itself: through a script they cost more, but a second
// round trip costs more than that.
const inlineMost = 8

// claimPatience bounds one claim, whose caller may have given up.
const claimPatience = 30 * time.Second

// claimMost bounds one script.
const claimMost = 500

// Receive waits until it can return at least one delivery, and returns at most max.
func (s *subscription) Receive(ctx context.Context, max int) ([]*driver.Delivery, error) {
	if max < 1 {
		return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("cannot receive %d deliveries", max), "ask for at least one", nil)
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		stray, extra, room, news, err := s.reserve(max)
		if len(extra) > 0 {
			s.Settle(ctx, extra)
		}
		if err != nil || len(stray) > 0 {
			return stray, err
		}
		if room > 0 {
			ds, err := s.claimFor(ctx, room)
			if len(ds) > 0 || err != nil {
				return ds, err
			}
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reserve returns what an earlier claim brought for nobody, with releases of what cannot be returned, or makes room for a
// claim.
func (s *subscription) reserve(most int) (stray []*driver.Delivery, extra []driver.Settlement, room int, news <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, 0, nil, driver.NewError(driver.ErrClosed, "the subscription is closed", "subscribe again", nil)
	}
	if stray, extra = s.takeStray(most); len(stray) > 0 {
		return stray, extra, 0, nil, nil
	}
	if s.abandoned > 0 { // its claim comes first, so that order is kept
		return nil, nil, 0, s.news, nil
	}
	if len(s.held)+s.reserved >= s.o.MaxInflight {
		s.dropEnded()
	}
	room = min(most, claimMost, s.o.MaxInflight-len(s.held)-s.reserved)
	s.starved = s.starved || room <= 0
	if room > 0 {
		s.reserved += room
		s.claims.Add(1)
	}
	return nil, nil, room, s.news, nil
}

// takeStray takes what is still held of what a cancelled claim brought. A run is never spread over two calls of Receive: a
// settlement that returns the rest of it could cross the second one. What does not fit of it is released. The caller has the lock.
func (s *subscription) takeStray(most int) (stray []*driver.Delivery, extra []driver.Settlement) {
	keys := map[string]bool{}
	rest := s.stray[:0:0]
	now := time.Now()
	for _, d := range s.stray {
		t := d.Token.(*token)
		switch {
		case !s.held[t] || now.After(t.until):
		case len(stray) < most:
			stray = append(stray, d)
			keys[d.Key] = d.Key != ""
		case keys[d.Key]:
			extra = append(extra, driver.Settlement{Delivery: d, Outcome: driver.Release})
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
func (s *subscription) claimFor(ctx context.Context, room int) ([]*driver.Delivery, error) {
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
		ds, err := s.claim(detached, room)
		s.mu.Lock()
		s.reserved -= room
		select {
		case <-abandoned:
			s.abandoned--
			s.stray = append(s.stray, ds...)
			close(s.news)
			s.news = make(chan struct{})
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

// claim takes from the shards in turn, those first whose last answer did not come.
func (s *subscription) claim(ctx context.Context, room int) ([]*driver.Delivery, error) {
	s.mu.Lock()
	again := s.unknown
	s.unknown = nil
	s.turn++
	turn := s.turn
	s.mu.Unlock()
	var all []*driver.Delivery
	for i, l := range again {
		ds, err := s.claimFrom(ctx, l.shard, l.token, min(l.most, room-len(all)))
		all = append(all, ds...)
		if err != nil || len(all) >= room {
			s.mu.Lock()
			s.unknown = append(s.unknown, again[i+1:]...)
			s.mu.Unlock()
			return all, unlessSome(all, err)
		}
	}
	for i := range s.keys {
		ds, err := s.claimFrom(ctx, (turn+i)%len(s.keys), s.d.newToken(), room-len(all))
		all = append(all, ds...)
		if err != nil || len(all) >= room {
			return all, unlessSome(all, err)
		}
	}
	return all, nil
}

// unlessSome drops the error of one shard when another one brought something: it comes again.
func unlessSome(ds []*driver.Delivery, err error) error {
	if len(ds) > 0 {
		return nil
	}
	return err
}

// claimFrom makes one lease of one shard.
func (s *subscription) claimFrom(ctx context.Context, shard int, name string, most int) ([]*driver.Delivery, error) {
	if most < 1 {
		return nil, nil
	}
	sh, keys := s.t.shards[shard], s.keys[shard]
	for {
		inline := most <= inlineMost
		before := time.Now()
		reply, err := s.d.run(ctx, &s.d.scripts.claim, keys, sh.of, name, most, s.o.Lease.Milliseconds(), s.o.MaxRun, s.o.Instance,
			s.steps[0], s.steps[1], s.steps[2], s.steps[3], flag(inline))
		if err != nil {
			if errors.Is(err, driver.ErrUnknown) {
				s.mu.Lock()
				s.unknown = append(s.unknown, lost{shard: shard, token: name, most: most})
				s.mu.Unlock()
			}
			return nil, err
		}
		switch text(reply, 0) {
		case "stale":
			return nil, driver.NewError(driver.ErrClosed, fmt.Sprintf("topic %q or group %q was deleted", s.o.Topic, s.o.Group), "subscribe again", nil)
		case "ok":
		default:
			return nil, errShape("claim", reply)
		}
		b := &batch{s: s, shard: shard, name: name, before: before}
		if err := b.read(ctx, reply, inline); err != nil {
			return nil, err
		}
		if len(b.ds) > 0 || b.dropped == 0 {
			return b.ds, nil
		}
		name = s.d.newToken() // all of it was undecodable
	}
}

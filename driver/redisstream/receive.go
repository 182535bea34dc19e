package redisstream

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
)

const (
	claimPatience = 30 * time.Second // bounds one claim, whose caller may have given up
	claimMost     = 500              // bounds one script

	// gathering is for how long what was taken waits for more where there is much: it is due now, and its lease has begun.
	gathering = 2 * time.Millisecond
)

// Receive waits until it can return at least one delivery, and returns at most max.
func (s *subscription) Receive(ctx context.Context, max int) ([]*driver.Delivery, error) {
	if err := driver.CheckMax(max); err != nil {
		return nil, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		room, news, err := s.reserve(max)
		if err != nil {
			return nil, err
		}
		if room > 0 {
			ds, err := s.claim(ctx, room)
			if len(ds) > 0 || err != nil {
				return ds, err
			}
		}
		timer := time.NewTimer(s.untilDue(room > 0))
		select {
		case <-news:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// reserve makes room for a claim.
func (s *subscription) reserve(most int) (room int, news <-chan struct{}, err error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if err := s.Gate.Refuse(); err != nil {
		return 0, nil, err
	}
	s.DropEnded()
	room = s.Gate.Room(min(most, claimMost), len(s.Held))
	if room > 0 {
		s.Gate.Reserve(room)
		s.work.Add(1)
	}
	return room, s.Gate.News(), nil
}

// untilDue is how long to wait for something to claim: no longer than the fallback, in case a wake-up was lost.
func (s *subscription) untilDue(room bool) time.Duration {
	wait := s.d.o.Fallback
	if !room {
		return wait
	}
	now := time.Now()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for i := range s.assignments {
		if x := &s.assignments[i]; x.epoch != "" && !x.taken {
			wait = min(wait, x.due.Sub(now))
		}
	}
	return max(wait, 0)
}

// claim takes from the partitions that we own and that may have something, in turn. No call of it is cut short by the
// caller's context: what it took must be known.
func (s *subscription) claim(caller context.Context, room int) ([]*driver.Delivery, error) {
	defer s.work.Done()
	defer s.free(room)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), claimPatience)
	defer cancel()
	if err := s.d.shell.Claims.Take(ctx); err != nil {
		return nil, err
	}
	defer s.d.shell.Claims.GiveBack()
	var all []*driver.Delivery
	var failed error
	var first time.Time
	for len(all) < room && failed == nil && (first.IsZero() || time.Since(first) < gathering) {
		claims := s.choose(room - len(all))
		if len(claims) == 0 {
			break
		}
		failed = s.send(ctx, claims, room-len(all))
		deep := false
		for _, c := range claims {
			s.put(c)
			all, deep = append(all, c.got.ds...), deep || c.got.deep
		}
		if !deep && len(all) > 0 || caller.Err() != nil { // what comes one by one does not wait for others
			break
		}
		if len(all) > 0 && first.IsZero() {
			first = time.Now()
		}
	}
	if len(all) > 0 {
		failed = nil // it comes again
	}
	return all, failed
}

// free gives back the room that a claim had.
func (s *subscription) free(room int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Gate.Free(room)
}

// choose picks partitions that we own, that may have something, and from which nobody claims at the moment: as many as
// there is room for all that a script reads, or one from which we read much ourselves. Less room than that is not
// divided, or those of a key that belong together would be.
func (s *subscription) choose(room int) (claims []*claim) {
	now := time.Now()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if now.Sub(s.looked) >= s.d.o.Fallback {
		s.looked = now
		for i := range s.assignments {
			s.assignments[i].ready = true
		}
	}
	n, most := len(s.assignments), max(1, room/smallClaim)
	for k := 0; k < n && len(claims) < most; k++ {
		s.turn++
		at := s.turn % n
		x := &s.assignments[at]
		deep := x.deep && room > smallClaim
		if x.epoch == "" || x.taken || !x.ready && now.Before(x.due) || deep && len(claims) > 0 {
			continue
		}
		x.taken, x.ready = true, false
		claims = append(claims, &claim{s: s, at: at, part: s.t.Parts[at], x: *x, lease: s.d.shell.NewToken(), begun: now})
		if deep {
			break
		}
	}
	return claims
}

// put notes how a claim ended.
func (s *subscription) put(c *claim) {
	s.Mu.Lock()
	x := &s.assignments[c.at]
	x.taken = false
	if x.epoch == c.x.epoch {
		x.ready, x.deep, x.due = x.ready || c.got.more, c.got.deep, time.Now().Add(c.got.next)
	}
	waiting := x.ready
	s.Mu.Unlock()
	if waiting {
		s.Announce()
	}
}

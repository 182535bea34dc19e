package redisstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

const (
	claimPatience = 30 * time.Second // bounds one claim, whose caller may have given up
	claimMost     = 500              // bounds one script
)

// Receive waits until it can return at least one delivery, and returns at most max.
func (s *subscription) Receive(ctx context.Context, max int) ([]*driver.Delivery, error) {
	if max < 1 {
		return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("cannot receive %d deliveries", max), "ask for at least one", nil)
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		room, news, err := s.reserve(max)
		if err != nil {
			return nil, err
		}
		wait := s.d.o.Fallback
		if room > 0 {
			ds, next, err := s.claim(ctx, room)
			if len(ds) > 0 || err != nil {
				return ds, err
			}
			wait = min(wait, next)
		}
		timer := time.NewTimer(wait)
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, nil, driver.NewError(driver.ErrClosed, "the subscription is closed", "subscribe again", nil)
	}
	if len(s.held)+s.reserved >= s.o.MaxInflight {
		now := time.Now()
		for t := range s.held {
			if now.After(t.until) {
				delete(s.held, t)
			}
		}
	}
	room = max(0, min(most, claimMost, s.o.MaxInflight-len(s.held)-s.reserved))
	if room > 0 {
		s.reserved += room
		s.work.Add(1)
	}
	return room, s.news, nil
}

// claim takes from the partitions that we own, in turn, and tells in how long something is due. It is never cut short by ctx: what
// it took must be known.
func (s *subscription) claim(ctx context.Context, room int) ([]*driver.Delivery, time.Duration, error) {
	defer s.work.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimPatience)
	defer cancel()
	s.mu.Lock()
	s.turn++
	turn, n := s.turn, len(s.t.parts)
	s.mu.Unlock()
	var all []*driver.Delivery
	next, failed := time.Hour, error(nil)
	for i := range n {
		at := (turn + i) % n
		s.mu.Lock()
		epoch := s.epochs[at]
		s.mu.Unlock()
		if epoch == "" || len(all) >= room {
			continue
		}
		ds, due, err := s.claimFrom(ctx, at, epoch, room-len(all))
		all, next = append(all, ds...), min(next, due)
		if err != nil {
			failed = err
			break
		}
	}
	s.mu.Lock()
	s.reserved -= room
	s.mu.Unlock()
	if len(all) > 0 {
		failed = nil // it comes again
	}
	return all, next, failed
}

// claimFrom makes one lease of one partition.
func (s *subscription) claimFrom(ctx context.Context, at int, epoch string, most int) ([]*driver.Delivery, time.Duration, error) {
	p, lease, begun := s.t.parts[at], s.d.newToken(), time.Now()
	s.mu.Lock()
	lost := s.lost[at]
	s.mu.Unlock()
	reply, err := p.run(ctx, &s.d.scripts.claim, s.o.Group, s.id, epoch, lease, most, s.o.Lease.Milliseconds(), s.o.MaxRun, s.o.Instance,
		s.d.o.Window, s.steps[0], s.steps[1], s.steps[2], s.steps[3], lost)
	s.mu.Lock()
	switch {
	case errors.Is(err, driver.ErrUnknown):
		s.lost[at] += lease + " "
	case err == nil:
		s.lost[at] = strings.TrimPrefix(s.lost[at], lost) // another claim may have been lost meanwhile
	}
	s.mu.Unlock()
	if err != nil {
		return nil, time.Hour, err
	}
	switch text(reply, 0) {
	case "stale":
		return nil, time.Hour, s.gone(errStale)
	case "lost":
		s.mu.Lock()
		if s.epochs[at] == epoch {
			s.epochs[at] = ""
		}
		s.mu.Unlock()
		s.rebalance()
		return nil, time.Hour, nil
	}
	now, err := strconv.ParseInt(text(reply, 1), 10, 64)
	if err != nil {
		return nil, time.Hour, errShape("claim", reply)
	}
	next := time.Hour
	if due, err := strconv.ParseInt(text(reply, 2), 10, 64); err == nil {
		next = time.Duration(min(max(due-now, 0)+1, time.Hour.Milliseconds())) * time.Millisecond
	}
	var ds []*driver.Delivery
	for _, x := range list(reply, 3) {
		item, _ := x.([]any)
		t := &token{s: s, part: p, id: text(item, 0), lease: lease, until: begun.Add(s.o.Lease)}
		d, err := s.delivery(t, item, time.UnixMilli(now))
		if err != nil {
			if _, err := p.run(ctx, &s.d.scripts.invalid, t.id, err.Error()); err != nil {
				return ds, next, err
			}
			next = 0
			continue
		}
		s.mu.Lock()
		s.held[t] = true
		s.mu.Unlock()
		ds = append(ds, d)
	}
	return ds, next, nil
}

// delivery makes a delivery of what the claim script tells of a message.
func (s *subscription) delivery(t *token, item []any, now time.Time) (*driver.Delivery, error) {
	m, err := decode(texts(item, 5), t.id)
	if err != nil {
		return nil, err
	}
	m.Topic, m.PublishedAt = s.o.Topic, wall(text(item, 4))
	if err := m.Validate(max(s.d.caps.MaxBody, len(m.Body))); err != nil { // what was stored under another limit is still good
		return nil, err
	}
	failed, _ := strconv.Atoi(text(item, 1))
	lost, _ := strconv.Atoi(text(item, 2))
	cause, _ := strconv.Atoi(text(item, 3))
	return &driver.Delivery{Message: m, Group: s.o.Group, Ref: t.part.ref(t.id), Attempt: failed + 1, Deliveries: lost + 1,
		Cause: driver.Cause(cause), ClaimedAt: now, LeaseUntil: t.until, Token: t}, nil
}

package redisstream

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// subscription is one member of a group. It claims from the partitions that it owns.
type subscription struct {
	redisshell.Member[*token]
	d *Driver
	t *topic

	balancing sync.Mutex // one balance at a time
	members   []string   // as last seen; guarded by balancing

	woken chan struct{}
	stop  context.CancelFunc // of keepOwning
	work  sync.WaitGroup     // keepOwning, and claims under way

	// these are guarded by the lock of the member
	assignments []assignment
	looked      time.Time // when all partitions were looked at whatever we knew of them
	turn        int       // which partition is claimed from first
}

// assignment is what a subscription knows of one partition, be it the owner or not.
type assignment struct {
	epoch string    // with which we own it, or ""
	lost  string    // tokens of claims whose answers did not come
	ready bool      // there may be something to claim
	deep  bool      // there is much
	taken bool      // a claim is under way
	due   time.Time // when something may become due
}

// token fences one delivery.
type token struct {
	s     *subscription
	part  *partition
	id    string // of the stream entry
	lease string
	place int    // in its claim, from 1, if that is noted whole; else 0
	name  string // id of the message
	key   string
	size  int       // bytes of the entry
	until time.Time // by our clock; guarded by the lock of the subscription
}

// HeldBy reports whether a member has received it.
func (t *token) HeldBy(member any) bool { return member == any(&t.s.Member) }

// Part is its partition.
func (t *token) Part() int { return t.part.index }

// Place is its entry.
func (t *token) Place() string { return t.id }

// Ended reports whether its lease is over by our clock.
func (t *token) Ended(now time.Time) bool { return now.After(t.until) }

// String names the delivery by its lease and its entry.
func (t *token) String() string { return t.lease + "/" + strconv.Itoa(t.part.index) + "/" + t.id }

// newestForm ends the name of a member that can read claims that are noted whole (lua/spread.lua): there are some only
// while every member can.
const newestForm = ".2"

// Subscribe joins a group, and creates topic and group if they do not exist.
func (d *Driver) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	s := &subscription{d: d, woken: make(chan struct{}, 1)}
	err := s.Join(ctx, d.shell.Refuse, o, d.caps, d.shell.NewToken()+newestForm)
	if err != nil {
		return nil, err
	}
	m := membership{group: s.Options.Group, order: strconv.Itoa(int(s.Options.Order)), start: s.Options.Start}
	if s.t, err = d.joinAll(ctx, s.Options.Topic, m); err != nil {
		return nil, err
	}
	s.assignments = make([]assignment, len(s.t.Parts))
	d.wake.Listen(s.t, func(p *partition) string { return p.key })
	if err := s.balance(ctx); err != nil {
		return nil, err
	}
	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	// unless the driver was closed meanwhile
	err = d.shell.Add(s, func() { s.work.Go(func() { s.keepOwning(background) }) })
	if err != nil {
		_ = s.Close(ctx)
	}
	return s, err
}

// stir says that there may be something to claim from a partition, or -1 from any.
func (s *subscription) stir(at int) {
	s.Mu.Lock()
	for i := range s.assignments {
		if at < 0 || at == i {
			s.assignments[i].ready = true
		}
	}
	s.Mu.Unlock()
	s.Announce()
}

// heard forgets a delivery that the server has answered of: it is settled, or lost. The lock is held.
func (s *subscription) heard(t *token) {
	delete(s.Held, t)
	delete(s.Begun, t)
}

// Drain gives up every partition at once: what is held stays leased to its holder whoever owns its partition, and keeps
// its key from others. What unanswered claims took goes back, because no claim follows that would bring it.
func (s *subscription) Drain(ctx context.Context) error {
	s.Mu.Lock()
	if s.Gate.Closed() {
		s.Mu.Unlock()
		return nil
	}
	s.Gate.Drain()
	var calls []*scriptCall
	for i := range s.assignments {
		if lost := s.assignments[i].lost; lost != "" {
			calls = append(calls, &scriptCall{part: s.t.Parts[i], script: &s.d.scripts.leave,
				args: []any{s.Options.Group, "", lost}})
		}
	}
	s.Mu.Unlock()
	failed := s.d.runAll(ctx, calls)
	err := s.balance(ctx)
	if errors.Is(err, redisshell.ErrStale) {
		err = s.gone()
	}
	return cmp.Or(failed, err)
}

// leaveAtOnce bounds how many deliveries one script returns.
const leaveAtOnce = 200

// Close releases what is held to its old place, uncounted, and lets go of the partitions.
func (s *subscription) Close(ctx context.Context) error {
	if !s.End() {
		return nil
	}
	s.stop()
	s.d.shell.Remove(s)
	redisshell.Await(ctx, &s.work)
	s.balancing.Lock() // a Drain beside us may be saying that we live
	defer s.balancing.Unlock()
	s.Mu.Lock()
	tokens := make([][]any, len(s.t.Parts))
	maps.Copy(s.Held, s.Begun)
	for t := range s.Held {
		tokens[t.part.index] = append(tokens[t.part.index], t.id, t.lease)
	}
	clear(s.Held)
	clear(s.Begun)
	lost := make([]string, len(s.assignments))
	for i := range lost {
		lost[i] = s.assignments[i].lost
	}
	s.Mu.Unlock()
	return s.leave(ctx, tokens, lost)
}

// leave returns what is held in each partition, and then lets go of all partitions.
func (s *subscription) leave(ctx context.Context, tokens [][]any, lost []string) error {
	var err error
	last := make([]*scriptCall, len(s.t.Parts))
	for i, p := range s.t.Parts {
		for chunk := range slices.Chunk(tokens[i], 2*leaveAtOnce) {
			if _, e := p.run(ctx, &s.d.scripts.leave, append([]any{s.Options.Group, "", ""}, chunk...)...); e != nil {
				err = e
			}
		}
		last[i] = &scriptCall{part: p, script: &s.d.scripts.leave, args: []any{s.Options.Group, s.ID, lost[i]}}
	}
	return cmp.Or(s.d.runAll(ctx, last), err)
}

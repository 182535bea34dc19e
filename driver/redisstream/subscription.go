package redisstream

import (
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
	d     *Driver
	o     driver.SubscribeOptions
	t     *topic
	id    string // as a member
	steps [4]any // how far one claim moves each lane

	balancing sync.Mutex // one balance at a time
	members   []string   // as last seen; guarded by balancing

	kick chan struct{}
	stop context.CancelFunc // of keepOwning
	work sync.WaitGroup     // keepOwning, and claims under way

	mu     sync.Mutex
	gate   redisshell.Gate // whether to claim
	stakes []stake
	looked time.Time // when all partitions were looked at whatever we knew of them
	turn   int       // which partition is claimed from first
	held   map[*token]bool
	// deliveries that have begun, whether they are held or not, until the server has heard of them again
	begun map[*token]bool
}

// stake is what a subscription knows of one partition.
type stake struct {
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

// String names the delivery by its lease and its entry.
func (t *token) String() string { return t.lease + "/" + strconv.Itoa(t.part.index) + "/" + t.id }

// newestForm ends the name of a member that can read claims that are noted whole (lua/spread.lua): there are some only
// while every member can.
const newestForm = ".2"

// Subscribe joins a group, and creates topic and group if they do not exist.
func (d *Driver) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	o, err := o.Resolve(d.caps)
	if err != nil {
		return nil, err
	}
	if err := d.shell.Refuse(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &subscription{d: d, o: o, id: d.shell.NewToken() + newestForm, steps: redisshell.Steps(o),
		gate: redisshell.NewGate(o.MaxInflight),
		kick: make(chan struct{}, 1), held: map[*token]bool{}, begun: map[*token]bool{}}
	m := membership{group: o.Group, order: strconv.Itoa(int(o.Order)), start: o.Start}
	if s.t, err = d.joinAll(ctx, o.Topic, m); err != nil {
		return nil, err
	}
	s.stakes = make([]stake, len(s.t.parts))
	d.listen(s.t)
	if err := s.balance(ctx); err != nil {
		return nil, err
	}
	return s, s.begin(ctx)
}

// begin starts the background work, unless the driver was closed meanwhile.
func (s *subscription) begin(ctx context.Context) error {
	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	err := s.d.shell.Add(s, func() { s.work.Go(func() { s.keepOwning(background) }) })
	if err != nil {
		_ = s.Close(ctx)
	}
	return err
}

// stir says that there may be something to claim from a partition, or -1 from any.
func (s *subscription) stir(at int) {
	s.mu.Lock()
	for i := range s.stakes {
		if at < 0 || at == i {
			s.stakes[i].ready = true
		}
	}
	s.mu.Unlock()
	s.announce()
}

// belongs reports whether it is of a topic, and of a group, if one is named.
func (s *subscription) belongs(topic, group string) bool {
	return s.o.Topic == topic && (group == "" || s.o.Group == group)
}

// announce tells waiting calls to look again.
func (s *subscription) announce() {
	s.mu.Lock()
	s.gate.Announce()
	s.mu.Unlock()
}

// heard forgets a delivery that the server has answered of: it is settled, or lost. The lock is held.
func (s *subscription) heard(t *token) {
	delete(s.held, t)
	delete(s.begun, t)
}

// Drain gives up every partition at once: what is held stays leased to its holder whoever owns its partition, and keeps
// its key from others. What unanswered claims took goes back, because no claim follows that would bring it.
func (s *subscription) Drain(ctx context.Context) error {
	s.mu.Lock()
	if s.gate.Closed() {
		s.mu.Unlock()
		return nil
	}
	s.gate.Drain()
	var calls []*scriptCall
	for i := range s.stakes {
		if lost := s.stakes[i].lost; lost != "" {
			calls = append(calls, &scriptCall{part: s.t.parts[i], script: &s.d.scripts.leave, args: []any{s.o.Group, "", lost}})
		}
	}
	s.mu.Unlock()
	s.d.runAll(ctx, calls)
	err := s.balance(ctx)
	if errors.Is(err, redisshell.ErrStale) {
		err = s.gone()
	}
	for _, c := range calls {
		if c.err != nil {
			err = c.err
		}
	}
	return err
}

// leaveAtOnce bounds how many deliveries one script returns.
const leaveAtOnce = 200

// Close releases what is held to its old place, uncounted, and lets go of the partitions.
func (s *subscription) Close(ctx context.Context) error {
	s.mu.Lock()
	first := s.gate.Close()
	s.mu.Unlock()
	if !first {
		return nil
	}
	s.stop()
	s.d.shell.Remove(s)
	redisshell.Await(ctx, &s.work)
	s.balancing.Lock() // a Drain beside us may be saying that we live
	defer s.balancing.Unlock()
	s.mu.Lock()
	tokens := make([][]any, len(s.t.parts))
	maps.Copy(s.held, s.begun)
	for t := range s.held {
		tokens[t.part.index] = append(tokens[t.part.index], t.id, t.lease)
	}
	s.held, s.begun = map[*token]bool{}, map[*token]bool{}
	lost := make([]string, len(s.stakes))
	for i := range lost {
		lost[i] = s.stakes[i].lost
	}
	s.mu.Unlock()
	return s.leave(ctx, tokens, lost)
}

// leave returns what is held in each partition, and then lets go of all partitions.
func (s *subscription) leave(ctx context.Context, tokens [][]any, lost []string) error {
	var err error
	last := make([]*scriptCall, len(s.t.parts))
	for i, p := range s.t.parts {
		for chunk := range slices.Chunk(tokens[i], 2*leaveAtOnce) {
			if _, e := p.run(ctx, &s.d.scripts.leave, append([]any{s.o.Group, "", ""}, chunk...)...); e != nil {
				err = e
			}
		}
		last[i] = &scriptCall{part: p, script: &s.d.scripts.leave, args: []any{s.o.Group, s.id, lost[i]}}
	}
	s.d.runAll(ctx, last)
	for _, c := range last {
		if c.err != nil {
			err = c.err
		}
	}
	return err
}

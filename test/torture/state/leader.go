package state

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
)

const (
	candidates = 3           // of each group
	changeIn   = time.Second // more than the TTL, until another leads
	stateName  = "state"     // what leaders write, under their lease: their epoch
)

// group is some candidates of one lead, and who harms them.
type group struct {
	*run
	number  int
	random  *rand.Rand
	actors  []actor
	lives   int
	seen    int // events of the tape that were looked at
	epoch   uint64
	leader  string // the process under that epoch, and since when
	since   int64
	changes []change
}

// change is how another came to lead.
type change struct {
	how, victim string
	harmed      int64 // or, on disk, when it went on
	led         int64
	disturbed   bool // the server was restarted, too
}

// runLeaders harms leaders until the load is over.
func runLeaders(ctx context.Context, r *run) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.Load)
	defer cancel()
	groups := make([]*group, r.o.Groups)
	errs := make([]error, len(groups))
	var failed error
	var running sync.WaitGroup
	for i := range groups {
		groups[i] = &group{run: r, number: i + 1, random: r.random(uint64(i + 1))}
		running.Go(func() { errs[i] = groups[i].torture(ctx) })
	}
	running.Go(func() { failed = r.restartServer(ctx) })
	running.Wait()
	r.end()
	v := judgeLeaders(r.tape.all())
	for _, p := range v.problems {
		r.accuse("%s", p)
	}
	if r.o.Load >= 25*time.Second && v.late == 0 { // in less a busy machine may get to nothing
		r.accuse("no leader wrote late: nothing is proved")
	}
	var changes []time.Duration
	for _, g := range groups {
		changes = append(changes, g.judge()...)
	}
	r.figure("%d epochs, %d writes accepted, %d late ones refused, %d contexts seen to end in time", v.epochs, v.accepted,
		v.late, v.ended)
	r.figure("another leads after the harm of a leader, TTL %v: %s", r.o.TTL, spread(changes))
	return errors.Join(append(errs, failed)...)
}

// judge demands that another led soon after each harm, but for what the machine did not let the others run.
func (g *group) judge() (took []time.Duration) {
	all := g.tape.all()
	mates := fmt.Sprintf("leader-%d-", g.number)
	for _, c := range g.changes {
		d := time.Duration(c.led - c.harmed)
		took = append(took, d)
		d -= stalled(all, c.harmed, c.led, func(p string) bool { return strings.HasPrefix(p, mates) && p != c.victim })
		if d > g.o.TTL+changeIn && !c.disturbed {
			g.accuse("another led group %d %v after the %s of %s", g.number, d, c.how, c.victim)
		}
	}
	return took
}

// torture harms the leader, again and again.
func (g *group) torture(ctx context.Context) error {
	processes := candidates
	if g.o.Broker == "disk" {
		processes = 1 // which owns the directory, with the candidates in it
	}
	for i := range processes {
		if err := g.begin(i); err != nil {
			return err
		}
	}
	for rounds := 0; g.awaitLeader(ctx, 0, time.Minute); rounds++ {
		if !sleep(ctx, between(g.random, 0, g.o.TTL/3)) {
			return nil
		}
		if err := g.round(ctx); err != nil {
			return err
		}
	}
	if ctx.Err() == nil {
		g.accuse("nobody leads group %d", g.number)
	}
	return nil
}

// begin starts a life of a process, in place of the one before.
func (g *group) begin(i int) error {
	g.lives++
	where := g.backend.url
	if g.o.Broker == "disk" {
		where += fmt.Sprintf("/%d", g.number)
	}
	a, err := g.start(order{
		URL: where, Name: life(fmt.Sprintf("leader-%d", g.number), i, g.lives), Role: "leader", Group: g.number, TTL: g.o.TTL,
		Members: candidates, Seed: g.random.Uint64(), Pace: 60 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	if i < len(g.actors) {
		g.actors[i] = a
	} else {
		g.actors = append(g.actors, a)
	}
	return nil
}

// round harms the leader in one way, and measures until another leads.
func (g *group) round(ctx context.Context) error {
	g.look()
	i := g.find(g.leader)
	if i < 0 {
		return nil // it was killed a moment ago, and its last words came late
	}
	a, epoch, how := g.actors[i], g.epoch, g.choose()
	at := g.clock()
	g.harmed(a.name(), how)
	var err error
	switch how {
	case killed:
		a.kill()
		err = g.begin(i)
	case paused:
		a.pause()
		if g.o.Broker == "disk" { // nobody else can lead meanwhile
			sleep(ctx, g.o.TTL+between(g.random, 0, time.Second))
			at = g.clock()
			a.resume()
		}
	case slowed: // it goes on leading, and what it sends is on its way when another does
		a.cut(how, g.o.TTL/6)
		sleep(ctx, 2*g.o.TTL)
		a.heal()
		g.healed(a.name())
		return nil
	default:
		a.cut(how, 0)
	}
	if err != nil {
		return err
	}
	followed := g.awaitLeader(ctx, epoch, 10*g.o.TTL+30*time.Second)
	if followed {
		g.changes = append(g.changes, change{how, a.name(), at, max(at, g.since), g.disturbed(at)})
	}
	if how != killed {
		if followed {
			sleep(ctx, between(g.random, 0, 300*time.Millisecond))
		}
		if how == paused {
			a.resume()
		} else {
			a.heal()
		}
		g.healed(a.name())
	}
	return nil
}

func (g *group) choose() string {
	ways := []string{killed, killed, killed, killed, paused, paused, paused, cutOff, held, slowed}
	switch g.o.Broker {
	case "disk":
		ways = ways[:7] // all candidates are in one process
	case "memory":
		ways = ways[:8]
	}
	return ways[g.random.IntN(len(ways))]
}

// find returns which process a candidate is in, -1 if that is over.
func (g *group) find(name string) int {
	for i, a := range g.actors {
		if strings.HasPrefix(name, a.name()) && !a.gone() {
			return i
		}
	}
	return -1
}

// look reads the tape as far as it is, and returns a channel that is closed when there is more.
func (g *group) look() <-chan struct{} {
	events, more := g.tape.after(g.seen)
	g.seen += len(events)
	for _, e := range events {
		if e.Kind == kindLeads && e.Group == g.number && e.Epoch > g.epoch {
			g.epoch, g.leader, g.since = e.Epoch, e.Process, e.At
		}
	}
	return more
}

// awaitLeader waits until somebody leads under an epoch after this one.
func (g *group) awaitLeader(ctx context.Context, after uint64, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		more := g.look()
		if g.epoch > after {
			return true
		}
		select {
		case <-more:
		case <-ctx.Done():
			return false
		case <-timer.C:
			g.accuse("nobody led group %d for %v after epoch %d", g.number, most, after)
			return false
		}
	}
}

// candidates lead in turn: several in this process where it owns the broker, otherwise one.
func (m *member) candidates(ctx context.Context) error {
	if m.Broker != "disk" {
		return m.candidate(ctx)
	}
	errs := make([]error, m.Members)
	for i := range errs {
		o := m.order
		o.Name, o.Seed = fmt.Sprintf("%s/%d", o.Name, i+1), o.Seed+uint64(i)
		inner := newMember(o, m.b, m.record)
		m.tasks.Go(func() {
			defer inner.tasks.Wait()
			errs[i] = inner.candidate(ctx)
		})
	}
	m.tasks.Wait()
	return errors.Join(errs...)
}

// candidate leads for a while, again and again. After each time it waits for its successor and then writes late.
func (m *member) candidate(ctx context.Context) error {
	for ctx.Err() == nil {
		var last *cluster.Lock
		err := m.lead(ctx, func(_ context.Context, l *cluster.Lock) error {
			last = l
			m.underLease(l)
			return nil
		})
		if err != nil {
			return err
		}
		if last != nil {
			m.writeLate(ctx, last)
		}
	}
	return nil
}

func (m *member) duty() string { return fmt.Sprintf("torture-%d", m.Group) }

// lead does work under the lease: of cluster.Lead, or, with another TTL than that has, of a lock.
func (m *member) lead(ctx context.Context, work func(ctx context.Context, l *cluster.Lock) error) error {
	if m.TTL == cluster.DefaultTTL {
		return cluster.Lead(ctx, m.b, m.duty(), work)
	}
	l, err := cluster.Acquire(ctx, m.b, "lease", cluster.LockOptions{Bucket: m.bucket(), TTL: m.TTL})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	err = work(l.Context(), l)
	_ = l.Release(context.WithoutCancel(ctx)) // otherwise it ends by itself
	return err
}

// bucket is where the lease lies, and what is written under it.
func (m *member) bucket() string {
	if m.TTL == cluster.DefaultTTL {
		return cluster.LeadBucket(m.duty())
	}
	return m.duty()
}

// underLease writes until its time is over, or a write is refused. It does not look at its context, as one that was
// paused in the middle of a write would not. Somebody else in this process writes too, who does not hear of the end.
func (m *member) underLease(l *cluster.Lock) {
	blind := context.WithoutCancel(l.Context())
	m.record(Event{Kind: kindLeads, Epoch: l.Epoch()})
	m.tasks.Go(func() {
		<-l.Context().Done()
		m.record(Event{Kind: kindEnded, Epoch: l.Epoch()})
	})
	m.tasks.Go(func() {
		for m.writeState(l, false) && sleep(blind, m.Pace) {
		}
	})
	for end := time.Now().Add(between(m.random, m.TTL/2, 2*m.TTL)); time.Now().Before(end) &&
		sleep(blind, between(m.random, 0, m.Pace)); {
		if !m.writeState(l, false) {
			return
		}
	}
}

// writeState writes the epoch under its fence, and notes what became of that. It reports false if another leads. What
// is not known is not noted.
func (m *member) writeState(l *cluster.Lock, late bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*m.TTL)
	defer cancel()
	data := binary.BigEndian.AppendUint64(nil, l.Epoch())
	r := m.b.Driver().KV().Apply(ctx, m.bucket(), driver.KVOptions{},
		driver.Write{Name: stateName, Data: data, Fence: l.Fence()})[0]
	switch {
	case r.Err == nil:
		m.record(Event{Kind: kindWrite, Epoch: l.Epoch(), Revision: r.Revision, Late: late})
	case errors.Is(r.Err, ferry.ErrLeaseLost):
		m.record(Event{Kind: kindWrite, Epoch: l.Epoch(), Refused: true, Late: late || l.Err() != nil})
		return false
	}
	return !errors.Is(r.Err, ferry.ErrClosed)
}

// writeLate waits until a later epoch has written, and writes as one that was paused would.
func (m *member) writeLate(ctx context.Context, l *cluster.Lock) {
	for end := time.Now().Add(3 * m.TTL); time.Now().Before(end) && sleep(ctx, 20*time.Millisecond); {
		vs, err := m.b.Driver().KV().Get(ctx, m.bucket(), stateName)
		if errors.Is(err, ferry.ErrClosed) {
			return
		}
		if err == nil && len(vs[0].Data) == 8 && binary.BigEndian.Uint64(vs[0].Data) > l.Epoch() {
			m.writeState(l, true)
			return
		}
	}
}

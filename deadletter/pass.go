package deadletter

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// pass is one look at all letters, in several steps.
type pass struct {
	cursor string
	counts RecovererStats  // so far
	behind map[string]bool // keys of which a letter waits for its time: those after it wait too
}

// candidate is a letter that a strategy brings back now.
type candidate struct {
	letter   Letter
	strategy *Strategy
	priority int
}

// Once looks at the next MaxScan letters and brings back those that are due, lease or not. Run calls it; programs that
// have a leader of their own may call it themselves. Two at the same time bring no letter back twice.
func (r *Recoverer) Once(ctx context.Context) error {
	var deployed time.Time
	if r.o.Version != "" {
		var err error
		if deployed, err = r.queue.deployedAt(ctx, r.o.Version); err != nil {
			return err
		}
	}
	r.mu.Lock()
	p := r.pass
	r.mu.Unlock()
	if p.behind == nil {
		p.behind = map[string]bool{}
	}
	letters, next, err := r.read(ctx, p.cursor)
	if err != nil {
		return err
	}
	p.cursor = next
	now := time.Now()
	var due []candidate
	for _, l := range letters {
		if s := r.decide(ctx, l, now, deployed, &p); s != nil {
			due = append(due, candidate{letter: l, strategy: s})
		}
	}
	prioritise(due, r.o.VIP)
	err = r.bringBack(ctx, due)
	r.finish(p)
	if err == nil && next == "" {
		err = r.expire(ctx)
	}
	return err
}

// read returns the next letters, in the order in which they once came.
func (r *Recoverer) read(ctx context.Context, at string) (letters []Letter, next string, err error) {
	s, err := r.queue.newScan(ctx, r.o.Selection, at)
	if err != nil {
		return nil, "", err
	}
	first := s.at.Scanned
	for !s.ended() && s.at.Scanned-first < r.o.MaxScan {
		from := s.places[0].topic
		p, err := s.read(ctx, min(pagePart, r.o.MaxScan-(s.at.Scanned-first)))
		if err != nil {
			return nil, "", err
		}
		got, _, err := s.pick(ctx, p.Entries, from, len(p.Entries)+1)
		if err != nil {
			return nil, "", err
		}
		letters = append(letters, got.Letters...)
		s.done(p)
	}
	slices.SortStableFunc(letters, func(a, b Letter) int { return a.joined().Compare(b.joined()) })
	return letters, s.next(), nil
}

// decide returns the strategy that brings the letter back now, if one does, and counts it otherwise.
func (r *Recoverer) decide(ctx context.Context, l Letter, now, deployed time.Time, p *pass) *Strategy {
	i := slices.IndexFunc(r.o.Strategies, func(s Strategy) bool { return s.takes(ctx, l) })
	if i < 0 {
		p.counts.AwaitingReview++
		return nil
	}
	if l.rounds() > 0 {
		p.counts.DiedAgain++
	}
	s := &r.o.Strategies[i]
	key := l.key()
	switch s.judge(ctx, l, now, deployed) {
	case review:
		p.counts.AwaitingReview++
	case giveUp:
		p.counts.Unrecoverable++
		r.escalate(ctx, l, s)
	case notNow:
		p.counts.Blocked++
		p.behind[key] = true
	case notDue:
		p.counts.Waiting++
		p.behind[key] = true
	case replayNow:
		if key != "" && p.behind[key] {
			p.counts.Waiting++ // behind an earlier one of its key
			return nil
		}
		return s
	}
	return nil
}

// maxEscalated bounds the letters that are remembered as escalated.
const maxEscalated = 100_000

// escalate tells of a letter that is given up, once.
func (r *Recoverer) escalate(ctx context.Context, l Letter, s *Strategy) {
	if r.o.Escalate == nil {
		return
	}
	name := l.From + "/" + l.Group + "/" + l.name()
	r.mu.Lock()
	rounds, told := r.escalated[name]
	if told = told && rounds == l.rounds(); !told {
		if len(r.escalated) >= maxEscalated {
			clear(r.escalated)
		}
		r.escalated[name] = l.rounds()
	}
	r.mu.Unlock()
	if !told {
		r.o.Escalate(ctx, l, s.Name)
	}
}

// bringBack replays what is due, one strategy's run after the other so that the order stays.
func (r *Recoverer) bringBack(ctx context.Context, due []candidate) error {
	for len(due) > 0 {
		s := due[0].strategy
		n := 1
		for n < len(due) && due[n].strategy == s && n < replayPart {
			n++
		}
		part := due[:n]
		due = due[n:]
		if err := r.replayPart(ctx, s, part); err != nil {
			return err
		}
	}
	return nil
}

func (r *Recoverer) replayPart(ctx context.Context, s *Strategy, part []candidate) error {
	letters := make(map[driver.Target]Letter, len(part))
	op, err := r.queue.newOperation(ReplayOptions{Edit: s.Prepare, Rate: r.o.Rate, Each: func(out LetterReport) {
		r.told(ctx, s, letters[driver.Target{Topic: out.Topic, Group: out.Group, Ref: out.Ref, ID: out.ID}], out)
	}})
	if err != nil {
		return err
	}
	list := make([]planned, len(part))
	for i, c := range part {
		list[i] = op.keep(planOf(c.letter), c.letter)
		at := list[i].target
		at.Death = 0 // an outcome does not tell it
		letters[at] = c.letter
	}
	return op.apply(ctx, list)
}

// told takes in what became of a letter.
func (r *Recoverer) told(ctx context.Context, s *Strategy, l Letter, out LetterReport) {
	// somebody else brought it back
	gone := errors.Is(out.Why, driver.ErrNotFound) || errors.Is(out.Why, driver.ErrConflict)
	r.mu.Lock()
	switch {
	case out.Result == Replayed:
		r.stats.Recovered++
	case !gone:
		r.stats.Failed++
	}
	r.mu.Unlock()
	switch {
	case out.Result == Replayed && s.OnSuccess != nil:
		s.OnSuccess(ctx, l)
	case out.Result == Skipped && !gone && s.OnFailure != nil:
		s.OnFailure(ctx, l, out.Why)
	}
}

// finish keeps where the pass stands, and publishes its numbers when it is complete.
func (r *Recoverer) finish(p pass) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.cursor != "" {
		r.pass = p
		return
	}
	s, c := &r.stats, p.counts
	s.DiedAgain, s.Unrecoverable, s.AwaitingReview, s.Waiting, s.Blocked = c.DiedAgain, c.Unrecoverable, c.AwaitingReview,
		c.Waiting, c.Blocked
	s.Passes++
	s.LastPass, s.LastErr = time.Now(), nil
	r.pass = pass{}
}

func (r *Recoverer) expire(ctx context.Context) error {
	dead, err := r.queue.Expire(ctx, r.o.Selection, r.o.Retention)
	bad, badErr := r.queue.Expire(ctx, Selection{Topic: r.o.Selection.Topic, State: driver.StateInvalid}, r.o.ParseErrors)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Expired += uint64(dead.Total() + bad.Total())
	return errors.Join(err, badErr)
}

package deadletter

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// planned is a letter that is to be replayed: enough to find it, to order it, and to see that it is still the same.
type planned struct {
	target driver.Target
	joined int64 // when it first joined its key, in nanoseconds
	rounds int
	letter *Letter // as it was read, for the first of them; see keep
}

const (
	defaultMaxPlan = 1_000_000
	keptBytes      = 32 << 20 // of letters that are kept as they were read
)

// keep keeps a letter that was just read, while there is room: it need not be read again to be moved or deleted, since
// this death of it never changes and a later one is refused.
func (op *Operation) keep(p planned, l Letter) planned {
	if l.Dead != nil && op.replay.To == "" && op.kept < keptBytes {
		op.kept += l.size() + 1000
		p.letter = &l
	}
	return p
}

// plan collects the next letters of the selection and puts them in the order in which they once came.
func (op *Operation) plan(ctx context.Context, s *scan) ([]planned, error) {
	var list []planned
	op.kept = 0
	for !s.ended() && len(list) < op.most() {
		from := s.places[0].topic
		p, err := s.read(ctx, min(pagePart, op.most()-len(list)))
		if err != nil {
			return nil, err
		}
		got, _, err := s.pick(ctx, p.Entries, from, len(p.Entries)+1)
		if err != nil {
			return nil, err
		}
		for range got.Faulty {
			op.skip(LetterReport{Topic: from}, got.Fault)
		}
		for _, l := range got.Letters {
			if op.take(l) {
				list = append(list, op.keep(planOf(l), l))
			}
		}
		s.done(p)
		op.look(s, len(list))
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return inOrder(list), nil
}

func (op *Operation) most() int { return cmp.Or(op.replay.MaxPlan, defaultMaxPlan) }

func planOf(l Letter) planned {
	return planned{target: l.Target(), joined: l.joined().UnixNano(), rounds: l.rounds()}
}

func inOrder(list []planned) []planned {
	slices.SortStableFunc(list, func(a, b planned) int {
		return cmp.Or(cmp.Compare(a.joined, b.joined), cmp.Compare(a.target.Ref.Partition, b.target.Ref.Partition),
			cmp.Compare(a.target.Ref.Pos, b.target.Ref.Pos), cmp.Compare(a.target.Ref.Sub, b.target.Ref.Sub))
	})
	return list
}

var (
	errRounds = driver.NewError(driver.ErrConflict, "it was replayed too often already",
		"raise MaxRounds, or look into why it dies", nil)
	errAgain = driver.NewError(driver.ErrConflict, "it was replayed meanwhile, and died again",
		"begin a new replay for it", nil)
	errGone = driver.NewError(driver.ErrNotFound, "it is no dead letter any more",
		"it was replayed or deleted meanwhile; there is nothing to do", nil)
	errHere = driver.NewError(driver.ErrConflict, "it is there already",
		"leave the target out: it then goes back to its own group", nil)
)

// take decides whether a letter of the selection belongs to this operation.
func (op *Operation) take(l Letter) bool {
	if c := op.replay.Checkpoint; c != nil && l.diedAt().After(c.Newest) {
		return false // died, or died again, since the operation began
	}
	switch {
	case op.replay.MaxRounds > 0 && l.rounds() >= op.replay.MaxRounds:
		op.skip(outcomeOf(l), errRounds)
		return false
	case op.replay.To == l.From, op.replay.ToGroup == l.Group && l.Group != "":
		op.skip(outcomeOf(l), errHere)
		return false
	}
	op.sawDeath(l.diedAt())
	return true
}

func (op *Operation) sawDeath(at time.Time) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if at.After(op.report.Checkpoint.Newest) {
		op.report.Checkpoint.Newest = at
	}
}

// planOnly looks up the letters that were named.
func (op *Operation) planOnly(ctx context.Context) ([]planned, error) {
	var list []planned
	for _, t := range op.replay.Only {
		l, err := op.queue.Get(ctx, t)
		switch {
		case permanent(err):
			op.skip(LetterReport{Topic: t.Topic, Group: t.Group, Ref: t.Ref, ID: t.ID}, err)
			continue
		case err != nil:
			return nil, err
		}
		yes, err := op.replay.Where.Match(ctx, l)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			op.skip(outcomeOf(l), err)
		}
		if yes && op.take(l) {
			list = append(list, op.keep(planOf(l), l))
		}
	}
	return inOrder(list), nil
}

func outcomeOf(l Letter) LetterReport {
	out := LetterReport{Topic: l.From, Group: l.Group, Ref: l.Ref}
	if l.Message != nil {
		out.ID, out.Key = l.ID, l.Key
	}
	return out
}

// permanent reports whether err is about one letter, and trying again cannot help.
func permanent(err error) bool {
	for _, kind := range [...]error{driver.ErrInvalid, driver.ErrNotFound, driver.ErrConflict, driver.ErrTooLarge,
		driver.ErrUnsupported} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

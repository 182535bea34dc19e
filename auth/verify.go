package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// clockSlack is how far the clock of the one who verifies may be from the broker's.
const clockSlack = time.Hour

// Verdict is what Verify found.
type Verdict struct {
	Checked  int      `json:"checked"`            // actions
	Newest   uint64   `json:"newest,omitempty"`   // sequence of the newest one
	Head     string   `json:"head,omitempty"`     // its hash; kept elsewhere, it tells whether newer ones were removed
	Problems []string `json:"problems,omitempty"` // none: the chain is whole. At most 100
}

const mostProblems = 100

func (v *Verdict) problem(format string, args ...any) {
	if len(v.Problems) < mostProblems {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}

// Verify walks over all actions, and finds those that were changed, removed or put in between.
func (a *Actions) Verify(ctx context.Context) (Verdict, error) {
	cut, err := a.anchor(ctx)
	if err != nil {
		return Verdict{}, err
	}
	var v Verdict
	var after *Recorded // the action that was looked at before: the next newer one
	q := driver.KVQuery{Bucket: actionsBucket, Prefix: actionPrefix, Limit: driver.MaxLimit}
	for {
		p, err := a.kv.List(ctx, q)
		if err != nil {
			return v, err
		}
		for _, value := range p.Values {
			r, bad := decodeAction(value)
			if bad != nil {
				v.problem("%v", bad)
			}
			v.link(after, &r)
			v.Checked++
			after = &r
		}
		if q.After = p.Next; p.Next == "" {
			v.oldest(after, cut, time.Now())
			return v, nil
		}
	}
}

// link checks that the action newer follows r.
func (v *Verdict) link(newer, r *Recorded) {
	switch {
	case newer == nil:
		v.Newest, v.Head = r.Sequence, r.Hash
	case newer.Sequence != r.Sequence+1:
		v.problem("actions %d to %d are missing", r.Sequence+1, newer.Sequence-1)
	case newer.Before != r.Hash:
		v.problem("action %d does not follow action %d: one of them was replaced", newer.Sequence, r.Sequence)
	}
}

// oldest checks that what is missing before the oldest action went by age, or was cut off for room.
func (v *Verdict) oldest(r *Recorded, cut cutAt, now time.Time) {
	if r == nil || r.Sequence == 1 {
		return
	}
	aged := now.Add(clockSlack).Sub(r.BeforeAt) >= KeepActions
	if !aged && !(cut.Sequence == r.Sequence-1 && cut.Hash == r.Before) {
		v.problem("the actions before %d are missing, although they are not old enough to be gone", r.Sequence)
	}
}

// anchor returns where the chain was cut for room.
func (a *Actions) anchor(ctx context.Context) (cutAt, error) {
	var c cutAt
	values, err := a.kv.Get(ctx, actionsBucket, cutName)
	if err != nil || values[0].Revision == 0 {
		return c, err
	}
	if json.Unmarshal(values[0].Data, &c) != nil {
		return cutAt{}, nil // it vouches for nothing
	}
	return c, nil
}

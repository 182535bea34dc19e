package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

const (
	// KeepActions is how long an action is kept.
	KeepActions = 30 * 24 * time.Hour

	actionRetries = 100 // recorders that may be first, one after the other
)

// Actions is the list of what operators did on a broker, the same for all its servers. It is safe for concurrent use.
//
// Each action holds the hash of the one before it, so that nobody changes or removes one of them, or puts one in
// between, without Verify finding it. Who may write to the broker can still make a whole new chain, or remove the
// newest actions: the hashes are in the log of the server too, to compare.
type Actions struct {
	kv     driver.KV
	log    *slog.Logger
	most   uint64 // that are kept when there is no room for more
	denied denials
}

// NewActions returns the actions of a broker.
func NewActions(b *ferry.Broker) *Actions {
	return &Actions{kv: b.Driver().KV(), log: b.Logger(), most: driver.MaxValues - driver.MaxLimit}
}

// Record adds an action to the chain. Denied ones of the same identity and What are recorded once a minute, with their
// number: see Flush.
func (a *Actions) Record(ctx context.Context, action Action) error {
	action = complete(ctx, action)
	if action.Outcome == Denied {
		first := a.denied.first(action, time.Now())
		if !first {
			return nil
		}
	}
	return a.append(ctx, action)
}

// complete fills in what the context knows.
func complete(ctx context.Context, action Action) Action {
	if action.At.IsZero() {
		action.At = time.Now()
	}
	action.At = action.At.UTC().Round(time.Millisecond) // what JSON reads back is what was hashed
	action.Who = cmp.Or(action.Who, From(ctx).String())
	action.RequestID = cmp.Or(action.RequestID, RequestID(ctx))
	action.Outcome = cmp.Or(action.Outcome, Done)
	action.cut()
	return action
}

// append writes the action behind the newest one. Whoever loses the place to another recorder tries the next.
func (a *Actions) append(ctx context.Context, action Action) error {
	for range actionRetries {
		r, err := a.next(ctx, action)
		if err != nil {
			return err
		}
		err = a.write(ctx, r)
		switch {
		case err == nil:
			a.log.InfoContext(ctx, "action", "who", r.Who, "what", r.What, "topic", r.Topic, "outcome", r.Outcome,
				"count", r.Count,
				"request", r.RequestID, "sequence", r.Sequence, "hash", r.Hash)
			return nil
		case errors.Is(err, driver.ErrFull):
			if err := a.shorten(ctx, r.Sequence); err != nil {
				return err
			}
		case !errors.Is(err, driver.ErrConflict):
			return err
		}
	}
	return driver.NewError(driver.ErrNotApplied, "the action could not be recorded: others were always faster",
		"try again", nil)
}

// next returns the action with its place in the chain.
func (a *Actions) next(ctx context.Context, action Action) (Recorded, error) {
	r := Recorded{Action: action, Sequence: 1}
	newest, err := a.kv.List(ctx, driver.KVQuery{Bucket: actionsBucket, Prefix: actionPrefix, Limit: 1})
	if err != nil {
		return r, err
	}
	if len(newest.Values) > 0 {
		v := newest.Values[0]
		before, bad := decodeAction(v)
		if bad != nil {
			a.log.ErrorContext(ctx, "the newest action is damaged; the chain goes on after it", "error", bad)
			before.Sequence, _ = sequenceOf(v.Name)
		}
		r.Sequence, r.Before, r.BeforeAt = before.Sequence+1, before.Hash, v.Written.UTC().Round(time.Millisecond)
	}
	r.Hash = r.hash()
	return r, nil
}

func (a *Actions) write(ctx context.Context, r Recorded) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	// not the hash: two may say the same at once
	w := driver.Write{Name: actionName(r.Sequence), Data: data, If: driver.Absent, TTL: KeepActions,
		Request: rand.Text()}
	res := a.kv.Apply(ctx, actionsBucket, driver.KVOptions{}, w)[0]
	if errors.Is(res.Err, driver.ErrUnknown) && ctx.Err() == nil {
		// under the same request: it is not written twice
		res = a.kv.Apply(ctx, actionsBucket, driver.KVOptions{}, w)[0]
	}
	return res.Err
}

// cutAt is an anchor: the actions up to Sequence were removed to make room.
type cutAt struct {
	Sequence uint64 `json:"sequence"`
	Hash     string `json:"hash"`
}

// shorten removes the oldest actions of a full bucket, and notes where the chain is cut before it does.
func (a *Actions) shorten(ctx context.Context, sequence uint64) error {
	if sequence <= a.most {
		return driver.BucketFull(actionsBucket)
	}
	old, err := a.kv.List(ctx, driver.KVQuery{Bucket: actionsBucket, Prefix: actionPrefix,
		After: actionName(sequence - a.most + 1), Limit: driver.MaxLimit})
	if err != nil || len(old.Values) == 0 {
		return err
	}
	newest, _ := decodeAction(old.Values[0])
	anchor, err := json.Marshal(cutAt{Sequence: newest.Sequence, Hash: newest.Hash})
	if err != nil {
		return err
	}
	writes := []driver.Write{{Name: cutName, Data: anchor}}
	for _, v := range old.Values {
		writes = append(writes, driver.Write{Name: v.Name, Delete: true})
	}
	for _, res := range a.kv.Apply(ctx, actionsBucket, driver.KVOptions{}, writes...) {
		if res.Err != nil {
			return res.Err
		}
	}
	return nil
}

// ActionQuery asks for a page of actions.
type ActionQuery struct {
	// Cursor is where to go on: ActionPage.Next. Empty: from the newest.
	Cursor string
	// Limit is how many at most. Defaults to 100, and is 1000 at most.
	Limit int
}

// ActionPage is a page of actions, the newest first.
type ActionPage struct {
	Actions []Recorded
	// Next continues after this page; empty at the end.
	Next string
}

// List returns a page of the actions. What cannot be read is left out: Verify tells of it.
func (a *Actions) List(ctx context.Context, q ActionQuery) (ActionPage, error) {
	p, err := a.kv.List(ctx, driver.KVQuery{Bucket: actionsBucket, Prefix: actionPrefix, After: q.Cursor,
		Limit: q.Limit})
	if err != nil {
		return ActionPage{}, err
	}
	out := ActionPage{Next: p.Next}
	for _, v := range p.Values {
		var r Recorded
		if json.Unmarshal(v.Data, &r) == nil {
			out.Actions = append(out.Actions, r)
		}
	}
	return out, nil
}

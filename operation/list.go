package operation

import (
	"context"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// Query selects operations.
type Query struct {
	// Open leaves those out that have ended.
	Open bool
	// Prefix of the names of their kinds: "letters." for example.
	Prefix string
	// Cursor is where to go on: Page.Next. Empty: from the oldest.
	Cursor string
	// Limit is how many are looked at. Defaults to 100, and is 1000 at most.
	Limit int
}

// Page is some of the operations that a Query selects, in order of their ids: those that were made for them sort by
// time. It may be empty although there is more.
type Page struct {
	Operations []Operation
	// Next continues after this page; empty at the end.
	Next string
}

// List returns a page of the operations that wait, run, or ended within History. Of one that cannot be read it tells
// the problem alone.
func (q *Queue) List(ctx context.Context, query Query) (Page, error) {
	p, err := q.kv.List(ctx, driver.KVQuery{Bucket: bucket, Prefix: opPrefix, After: query.Cursor, Limit: query.Limit})
	if err != nil {
		return Page{}, err
	}
	locks, err := q.locks(ctx, p.Values)
	if err != nil {
		return Page{}, err
	}
	out := Page{Next: p.Next}
	for i, v := range p.Values {
		s, bad := decode(v)
		op := s.operation(locks[i].Revision != 0)
		if bad != nil {
			op.Problem = bad.Error()
		}
		if strings.HasPrefix(op.Kind, query.Prefix) && !(query.Open && op.State.Ended()) {
			out.Operations = append(out.Operations, op)
		}
	}
	return out, nil
}

// locks returns the lock of each operation, in the same order.
func (q *Queue) locks(ctx context.Context, ops []driver.Value) ([]driver.Value, error) {
	if len(ops) == 0 {
		return nil, nil
	}
	names := make([]string, len(ops))
	for i, v := range ops {
		names[i] = lockPrefix + strings.TrimPrefix(v.Name, opPrefix)
	}
	return q.kv.Get(ctx, bucket, names...)
}

// candidate is an open operation, and its lock if somebody works on it.
type candidate struct {
	stored
	lock driver.Value
}

// open returns all open operations, oldest first, and a revision after which Changes tells of others. What cannot be
// read is for another version.
func (q *Queue) open(ctx context.Context) (all []candidate, revision uint64, err error) {
	query := driver.KVQuery{Bucket: bucket, Prefix: opPrefix, Limit: driver.MaxLimit}
	for first := true; ; first = false {
		p, err := q.kv.List(ctx, query)
		if err != nil {
			return nil, 0, err
		}
		if first {
			revision = p.Revision
		}
		var values []driver.Value
		var found []candidate
		for _, v := range p.Values {
			if s, bad := decode(v); bad == nil && s.End == "" {
				values, found = append(values, v), append(found, candidate{stored: s})
			}
		}
		locks, err := q.locks(ctx, values)
		if err != nil {
			return nil, 0, err
		}
		for i := range found {
			found[i].lock = locks[i]
		}
		all = append(all, found...)
		if query.After = p.Next; p.Next == "" {
			return all, revision, nil
		}
	}
}

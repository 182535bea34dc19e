package operation

import (
	"context"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// Open returns the operations that have not ended, oldest first, and the revision after which Changes tells of others.
func (q *Queue) Open(ctx context.Context) ([]Operation, uint64, error) {
	all, revision, err := q.open(ctx)
	ops := make([]Operation, len(all))
	for i, c := range all {
		ops[i] = c.operation(c.lock.Revision != 0)
	}
	return ops, revision, err
}

// Changes waits until operations have changed since a revision, and returns them as they are now, with the revision up
// to which that is all. It may return none. ErrNotFound says that too much has changed meanwhile: begin with Open
// again. That a worker was killed is no change; that another goes on is.
func (q *Queue) Changes(ctx context.Context, after uint64) ([]Operation, uint64, error) {
	changes, revision, err := q.kv.Changes(ctx, bucket, after)
	if err != nil {
		return nil, after, err
	}
	var names []string
	for _, v := range changes {
		if id, ok := idOf(v.Name); ok && !slices.Contains(names, opPrefix+id) {
			names = append(names, opPrefix+id)
		}
	}
	ops, err := q.named(ctx, names)
	return ops, revision, err
}

// idOf returns whose value or lock it is.
func idOf(name string) (id string, ok bool) {
	if id, ok = strings.CutPrefix(name, opPrefix); ok {
		return id, true
	}
	return strings.CutPrefix(name, lockPrefix)
}

// named returns those of some operations that are there and can be read.
func (q *Queue) named(ctx context.Context, names []string) ([]Operation, error) {
	if len(names) == 0 {
		return nil, nil
	}
	values, err := q.kv.Get(ctx, bucket, names...)
	if err != nil {
		return nil, err
	}
	values = slices.DeleteFunc(values, func(v driver.Value) bool { return v.Revision == 0 })
	locks, err := q.locks(ctx, values)
	if err != nil {
		return nil, err
	}
	var ops []Operation
	for i, v := range values {
		if s, bad := decode(v); bad == nil {
			ops = append(ops, s.operation(locks[i].Revision != 0))
		}
	}
	return ops, nil
}

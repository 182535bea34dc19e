package remote

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
	"github.com/ferrymq/ferry/internal/framecall"
)

// kv are the named values of the broker behind the gateway.
type kv struct{ d *Driver }

// KV holds small named values beside the messages.
func (d *Driver) KV() driver.KV { return kv{d} }

// Get returns values by name.
func (k kv) Get(ctx context.Context, bucket string, names ...string) ([]driver.Value, error) {
	var vs frame.Values
	err := k.d.look(ctx, frame.CallKVGet, &frame.Names{Bucket: bucket, Names: names}, &vs)
	return vs.Values, err
}

// List returns a page of a bucket.
func (k kv) List(ctx context.Context, q driver.KVQuery) (driver.KVPage, error) {
	var vs frame.Values
	err := k.d.look(ctx, frame.CallKVList, (*frame.KVQuery)(&q), &vs)
	return driver.KVPage{Values: vs.Values, Next: vs.Next, Revision: vs.Revision}, err
}

// Apply makes each write one step, as many in one call as go into it.
func (k kv) Apply(ctx context.Context, bucket string, o driver.KVOptions, ws ...driver.Write) []driver.WriteResult {
	results := make([]driver.WriteResult, 0, len(ws))
	for begin := 0; begin < len(ws); {
		end := begin + fits(ws[begin:], writeSize, k.d.client.Limit()/2)
		results = append(results, k.apply(ctx, bucket, o, ws[begin:end])...)
		begin = end
	}
	return results
}

func (k kv) apply(ctx context.Context, bucket string, o driver.KVOptions, ws []driver.Write) []driver.WriteResult {
	var got frame.WriteResults
	err := k.d.change(ctx, frame.CallKVApply, &frame.Writes{Bucket: bucket, Options: o, Writes: ws}, &got)
	if err == nil && len(got) != len(ws) {
		err = driver.NewError(driver.ErrUnknown, "the server did not answer for each write",
			"try again under the same request", nil)
	}
	if err != nil {
		return refused(ws, err)
	}
	for i := range got {
		got[i].Err = framecall.Away(got[i].Err, driver.ErrUnknown)
	}
	return got
}

// refused gives every write one error.
func refused(ws []driver.Write, err error) []driver.WriteResult {
	results := make([]driver.WriteResult, len(ws))
	for i, w := range ws {
		results[i] = driver.WriteResult{Value: driver.Value{Name: w.Name}, Err: err}
	}
	return results
}

// writeSize is about how many bytes a write takes in a call.
func writeSize(w driver.Write) int { return 128 + len(w.Name) + len(w.Data) + len(w.Request) }

// Wait returns the value as soon as it has another revision.
func (k kv) Wait(ctx context.Context, bucket, name string, after uint64) (driver.Value, error) {
	vs, err := k.watch(ctx, frame.CallKVWait, &frame.Watch{Bucket: bucket, Name: name, After: after})
	if err == nil && len(vs.Values) != 1 {
		err = driver.NewError(driver.ErrNotApplied, "the server answered with another number of values", "try again", nil)
	}
	if err != nil {
		return driver.Value{}, err
	}
	return vs.Values[0], nil
}

// Changes waits for writes after a revision.
func (k kv) Changes(ctx context.Context, bucket string, after uint64) ([]driver.Value, uint64, error) {
	vs, err := k.watch(ctx, frame.CallKVChanges, &frame.Watch{Bucket: bucket, After: after})
	return vs.Values, vs.Revision, err
}

// watch asks until something has changed.
func (k kv) watch(ctx context.Context, call string, q *frame.Watch) (frame.Values, error) {
	for {
		vs := frame.Values{}
		err := k.d.look(ctx, call, q, &vs)
		switch {
		case err != nil && ctx.Err() != nil:
			return frame.Values{}, ctx.Err()
		case err != nil || !vs.Again:
			return vs, err
		}
	}
}

package victim

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry/driver"
)

// KV returns the named values, which are reached as everything else is.
func (d *Driver) KV() driver.KV { return &values{d.Driver.KV(), d.harm} }

type values struct {
	inner driver.KV
	harm  *Harm
}

// Get returns values, unless the request or the answer gets lost on the way.
func (v *values) Get(ctx context.Context, bucket string, names ...string) (vs []driver.Value, err error) {
	err = v.ask(func() (err error) {
		vs, err = v.inner.Get(ctx, bucket, names...)
		return err
	})
	return vs, err
}

// List returns a page of values.
func (v *values) List(ctx context.Context, q driver.KVQuery) (page driver.KVPage, err error) {
	err = v.ask(func() (err error) {
		page, err = v.inner.List(ctx, q)
		return err
	})
	return page, err
}

// Apply makes writes, unless they or the answers get lost on the way.
func (v *values) Apply(ctx context.Context, bucket string, o driver.KVOptions,
	ws ...driver.Write) []driver.WriteResult {
	var results []driver.WriteResult
	err := v.ask(func() error {
		results = v.inner.Apply(ctx, bucket, o, ws...)
		return nil
	})
	if err == nil {
		return results
	}
	results = make([]driver.WriteResult, len(ws))
	for i := range results {
		results[i].Err = err
	}
	return results
}

// Wait waits for a change of a value.
func (v *values) Wait(ctx context.Context, bucket, name string, after uint64) (value driver.Value, err error) {
	err = v.await(ctx, func(ctx context.Context) (err error) {
		value, err = v.inner.Wait(ctx, bucket, name, after)
		return err
	})
	return value, err
}

// Changes waits for changes of a bucket.
func (v *values) Changes(ctx context.Context, bucket string, after uint64) (vs []driver.Value, upTo uint64, err error) {
	err = v.await(ctx, func(ctx context.Context) (err error) {
		vs, upTo, err = v.inner.Changes(ctx, bucket, after)
		return err
	})
	return vs, upTo, err
}

// ask calls the broker.
func (v *values) ask(call func() error) error {
	if c := v.harm.pass(); c.buried || c.away {
		return lost(c)
	}
	err := call()
	if c := v.harm.pass(); c.buried || c.mute {
		return errMute
	}
	return err
}

// await calls what waits in the broker. A connection that breaks meanwhile ends it.
func (v *values) await(ctx context.Context, call func(ctx context.Context) error) error {
	return v.ask(func() error {
		waiting, done := v.harm.wait(ctx)
		defer done()
		err := call(waiting)
		if errors.Is(err, context.Canceled) && ctx.Err() == nil {
			return errAway
		}
		return err
	})
}

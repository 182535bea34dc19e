package drivertest

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// brokenKV is named values with one defect.
type brokenKV struct {
	driver.KV
	write func(ctx context.Context, below driver.KV, bucket string, w *driver.Write)
	shown func(v *driver.Value)
	wait  func(ctx context.Context, below driver.KV, bucket, name string, after uint64) (driver.Value, error)
}

// KV returns the named values with their defect.
func (b *broken) KV() driver.KV {
	below := b.Driver.KV()
	if b.kv == nil {
		return below
	}
	k := *b.kv
	k.KV = below
	return &k
}

func (k *brokenKV) Apply(ctx context.Context, bucket string, o driver.KVOptions,
	ws ...driver.Write) []driver.WriteResult {
	copies := append([]driver.Write(nil), ws...)
	for i := range copies {
		if k.write != nil {
			k.write(ctx, k.KV, bucket, &copies[i])
		}
	}
	rs := k.KV.Apply(ctx, bucket, o, copies...)
	for i := range rs {
		if k.shown != nil {
			k.shown(&rs[i].Value)
		}
	}
	return rs
}

func (k *brokenKV) Get(ctx context.Context, bucket string, names ...string) ([]driver.Value, error) {
	vs, err := k.KV.Get(ctx, bucket, names...)
	for i := range vs {
		if k.shown != nil {
			k.shown(&vs[i])
		}
	}
	return vs, err
}

func (k *brokenKV) Wait(ctx context.Context, bucket, name string, after uint64) (driver.Value, error) {
	if k.wait != nil {
		return k.wait(ctx, k.KV, bucket, name, after)
	}
	return k.KV.Wait(ctx, bucket, name, after)
}

// valued makes a defect of named values.
func valued(k brokenKV) func(driver.Driver) driver.Driver {
	return func(d driver.Driver) driver.Driver { return &broken{Driver: d, kv: &k} }
}

// writing makes a defect that changes each write.
func writing(change func(w *driver.Write)) func(driver.Driver) driver.Driver {
	return valued(brokenKV{write: func(_ context.Context, _ driver.KV, _ string, w *driver.Write) { change(w) }})
}

func kvDefects() []Defect {
	return []Defect{
		{"a value ends by the reader's clock, which is ahead", valued(brokenKV{shown: func(v *driver.Value) {
			if v.Left > 0 && v.Left < unit {
				*v = driver.Value{Name: v.Name}
			}
		}}), []string{"kv/expires"}, false},
		{"a TTL is ignored", writing(func(w *driver.Write) { w.TTL = 0 }), []string{"kv/expires", "kv/renewed", "kv/fences"},
			false},
		{"conditions are ignored", writing(func(w *driver.Write) { w.If = 0 }),
			[]string{"kv/conditions", "kv/steps", "kv/random steps"}, false},
		{"a revision starts over", valued(brokenKV{shown: func(v *driver.Value) { v.Revision %= 2 }}),
			[]string{"kv/reads what was written"}, false},
		{"an epoch changes with each write", valued(brokenKV{shown: func(v *driver.Value) { v.Epoch = v.Revision }}),
			[]string{"kv/reads what was written", "kv/renewed", "kv/random steps"}, false},
		{"a fence is ignored", writing(func(w *driver.Write) { w.Fence = nil }),
			[]string{"kv/fences", "kv/fence inside the step", "kv/random steps"}, false},
		{"a fence is looked at before the step", valued(brokenKV{write: fenceFirst}), []string{"kv/fence inside the step"},
			false},
		{"requests are forgotten", writing(func(w *driver.Write) { w.Request = "" }), []string{"kv/requests"}, false},
		{"a deletion of nothing is forgotten", valued(brokenKV{write: forgetNothing}), []string{"kv/requested deletions"},
			false},
		{"a lost wake-up is lost for ever", valued(brokenKV{wait: deafWait}), []string{"kv/waits"}, false},
	}
}

// fenceFirst looks at the fence, and lets the write go without it.
func fenceFirst(ctx context.Context, below driver.KV, bucket string, w *driver.Write) {
	if w.Fence == nil {
		return
	}
	if vs, err := below.Get(ctx, bucket, w.Fence.Name); err == nil && vs[0].Epoch == w.Fence.Epoch {
		w.Fence = nil
		time.Sleep(time.Millisecond) // somebody else's turn
	}
}

// forgetNothing has a deletion that finds nothing forgotten.
func forgetNothing(ctx context.Context, below driver.KV, bucket string, w *driver.Write) {
	if vs, err := below.Get(ctx, bucket, w.Name); w.Delete && err == nil && vs[0].Revision == 0 {
		w.Request = ""
	}
}

// deafWait does not look again.
func deafWait(ctx context.Context, below driver.KV, bucket, name string, after uint64) (driver.Value, error) {
	vs, err := below.Get(ctx, bucket, name)
	if err != nil || vs[0].Revision != after {
		return append(vs, driver.Value{})[0], err
	}
	<-ctx.Done()
	return driver.Value{}, ctx.Err()
}

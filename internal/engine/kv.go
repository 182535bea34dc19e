package engine

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kv"
)

// KV returns the named values.
func (e *Engine) KV() driver.KV { return e.kv }

func (e *Engine) newKV() *kv.Local {
	o := kv.LocalOptions{Levels: e.o.Capabilities}
	if e.o.Store != nil {
		o.Save, o.Stopped = e.saveKV, e.stopped
	}
	return kv.NewLocal(o)
}

// saveKV stores a step of the named values as one batch.
func (e *Engine) saveKV(rs []kv.Record, synced bool) kv.Saving {
	b := e.o.Store.Batch()
	for _, r := range rs {
		key := append(appendPrefix(nil, 0, kindKV), r.Key...)
		if r.Value == nil {
			b.Delete(key)
		} else {
			b.Set(key, r.Value, nil)
		}
	}
	r := e.o.Store.Append(b, synced)
	return func(ctx context.Context, synced bool) error { return e.outcome(ctx, r, synced) }
}

// restoreKV reads the named values back.
func (e *Engine) restoreKV() error {
	from, to := rangeOf(0, kindKV)
	err := e.o.Store.Scan(from, to, func(key, value []byte) error {
		if err := e.kv.Restore(key[prefixSize:], value); err != nil {
			return damaged(fmt.Sprintf("the record of a named value, key %x, is damaged", key), err)
		}
		return nil
	})
	if err == nil {
		e.kv.Restored(e.now().at)
	}
	return err
}

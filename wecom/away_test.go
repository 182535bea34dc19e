package wecom_test

import (
	"context"
	"sync/atomic"

	"github.com/ferrymq/ferry/driver"
)

// What a broker does with what is written to it.
const (
	answers      int32 = iota
	losesAnswers       // it is applied, and nobody learns of it
	isAway             // nothing is applied
)

// awayDriver is a driver whose broker is away at times, as those see it who write to it. It delivers all the same.
type awayDriver struct {
	driver.Driver
	mode *atomic.Int32
}

var errLost = driver.NewError(driver.ErrUnknown, "the answer was lost", "", nil)

// failure tells whether a write is applied, and what becomes of its answer.
func (d awayDriver) failure() (applied bool, err error) {
	switch d.mode.Load() {
	case losesAnswers:
		return true, errLost
	case isAway:
		return false, errAway
	}
	return true, nil
}

func (d awayDriver) Publish(ctx context.Context, ms []*driver.Message,
	o driver.PublishOptions) ([]driver.Receipt, error) {
	applied, failed := d.failure()
	rs := make([]driver.Receipt, len(ms))
	var err error
	if applied {
		rs, err = d.Driver.Publish(ctx, ms, o)
	}
	if failed == nil {
		return rs, err
	}
	for i := range rs {
		rs[i] = driver.Receipt{Err: failed}
	}
	return rs, failed
}

func (d awayDriver) KV() driver.KV { return awayKV{KV: d.Driver.KV(), d: d} }

type awayKV struct {
	driver.KV
	d awayDriver
}

func (kv awayKV) Get(ctx context.Context, bucket string, names ...string) ([]driver.Value, error) {
	if kv.d.mode.Load() == isAway {
		return nil, errAway
	}
	return kv.KV.Get(ctx, bucket, names...)
}

func (kv awayKV) Apply(ctx context.Context, bucket string, o driver.KVOptions,
	ws ...driver.Write) []driver.WriteResult {
	applied, failed := kv.d.failure()
	rs := make([]driver.WriteResult, len(ws))
	if applied {
		rs = kv.KV.Apply(ctx, bucket, o, ws...)
	}
	if failed != nil {
		for i := range rs {
			rs[i] = driver.WriteResult{Err: failed}
		}
	}
	return rs
}

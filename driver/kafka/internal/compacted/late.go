package compacted

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// errStoredLate is for who was stopped, or held up, for longer than its lock lasts.
func errStoredLate(x *Contender) error {
	const hint = "look at the message again"
	if len(x.made) == 0 {
		return driver.NewError(driver.ErrNotApplied, "the change was stored too late to count", hint, nil)
	}
	return driver.NewError(driver.ErrUnknown, "the change was stored too late to count, but for what may have come of "+
		"the message", hint, nil)
}

// restore stores a row again that lies under the key of an end which is void: compaction would keep only that. Who dies
// before it leaves the row to be lost when its segment is compacted.
func (t *Table) restore(ctx context.Context, x *Contender) {
	covered := map[string]bool{}
	for _, r := range x.ends[:len(x.ends)-1] {
		covered[string(r.Key)] = true
	}
	row := t.Row(x.Key)
	if row < 0 {
		for key := range covered {
			if r := t.Get(key); r != nil {
				row = r.Offset
			}
		}
	}
	if row < 0 {
		return
	}
	r, err := t.d.cluster.ReadOne(ctx, t.Topic, x.Partition, row)
	if err != nil || r == nil || !covered[string(r.Key)] {
		return
	}
	_ = t.Contend(ctx, x.Partition, x.Key, t.Row(x.Key), func(context.Context) (_, ends []*kgo.Record, err error) {
		return nil, []*kgo.Record{{Topic: t.Topic, Partition: x.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers}},
			nil
	})
}

package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// limit makes records void that brokers store after a time of theirs.
func limit(until time.Time, lists ...[]*kgo.Record) {
	for _, rs := range lists {
		for _, r := range rs {
			s, ok := stateOf(r)
			if !ok {
				s.Offset = -1
			}
			s.Until = until.UnixMilli()
			r.Headers = withState(r.Headers, s)
		}
	}
}

// withState replaces the state among headers, or adds it.
func withState(headers []kgo.RecordHeader, s state) []kgo.RecordHeader {
	out := make([]kgo.RecordHeader, 0, len(headers)+1)
	for _, h := range headers {
		if h.Key != stateHeader {
			out = append(out, h)
		}
	}
	return append(out, s.header())
}

// late reports whether the record of a state was stored later than it may: it has no effect.
func (s state) late(r *kgo.Record) bool { return s.Until > 0 && r.Timestamp.UnixMilli() > s.Until }

func isLate(r *kgo.Record) bool {
	s, _ := stateOf(r)
	return s.late(r)
}

// errStoredLate is for who was stopped, or held up, for longer than its claim lasts.
func errStoredLate(x *contender) error {
	const hint = "look at the message again"
	if len(x.made) == 0 {
		return driver.NewError(driver.ErrNotApplied, "the change was stored too late to count", hint, nil)
	}
	return driver.NewError(driver.ErrUnknown, "the change was stored too late to count, but for what may have come of the message", hint, nil)
}

// restore stores a row again that lies under the key of an end which is void: compaction would keep only that. Who dies before it leaves the row to be lost
// when its segment is compacted.
func (t *table) restore(ctx context.Context, x *contender) {
	covered := map[string]bool{}
	for _, r := range x.ends[:len(x.ends)-1] {
		covered[string(r.Key)] = true
	}
	row := t.row(x.key)
	if row < 0 {
		for key := range covered {
			if r := t.get(key); r != nil {
				row = r.Offset
			}
		}
	}
	if row < 0 {
		return
	}
	r, err := t.d.readOne(ctx, t.topic, x.partition, row)
	if err != nil || r == nil || !covered[string(r.Key)] {
		return
	}
	_ = t.contend(ctx, x.partition, x.key, t.row(x.key), func(context.Context) (_, ends []*kgo.Record, err error) {
		return nil, []*kgo.Record{{Topic: t.topic, Partition: x.partition, Key: r.Key, Value: r.Value, Headers: r.Headers}}, nil
	})
}

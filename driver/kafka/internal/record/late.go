package record

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Limit makes records void that brokers store after a time of theirs.
func Limit(until time.Time, lists ...[]*kgo.Record) {
	for _, rs := range lists {
		for _, r := range rs {
			s, ok := StateOf(r)
			if !ok {
				s.Offset = -1
			}
			s.Until = until.UnixMilli()
			r.Headers = withState(r.Headers, s)
		}
	}
}

// withState replaces the state among headers, or adds it.
func withState(headers []kgo.RecordHeader, s State) []kgo.RecordHeader {
	out := make([]kgo.RecordHeader, 0, len(headers)+1)
	for _, h := range headers {
		if h.Key != stateHeader {
			out = append(out, h)
		}
	}
	return append(out, s.Header())
}

// Late reports whether the record of a state was stored later than it may: it has no effect.
func (s State) Late(r *kgo.Record) bool { return s.Until > 0 && r.Timestamp.UnixMilli() > s.Until }

// IsLate reports whether a record was stored later than it may: it has no effect.
func IsLate(r *kgo.Record) bool {
	s, _ := StateOf(r)
	return s.Late(r)
}

package prom

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// kinds of errors of a publish, with the label of each.
var kinds = []struct {
	err   error
	label string
}{
	{ferry.ErrNotApplied, "not_applied"}, {ferry.ErrUnknown, "unknown"}, {ferry.ErrFull, "full"},
	{ferry.ErrTooLarge, "too_large"},
	{ferry.ErrRefused, "refused"}, {ferry.ErrClosed, "closed"}, {ferry.ErrUnsupported, "unsupported"},
	{ferry.ErrInvalid, "invalid"},
}

// publishers counts publishes by topic. It is on the way of every message: a look-up and a few additions.
type publishers struct {
	bounds *bounds
	topics sync.Map // name to *publisher
}

type publisher struct {
	topic     string
	published atomic.Uint64
	errors    []atomic.Uint64 // by kind, and one for the rest
	sum       atomic.Int64
	buckets   [worker.HistogramBuckets]atomic.Uint64
}

func (p *publishers) of(topic string) *publisher {
	if known, ok := p.topics.Load(topic); ok {
		return known.(*publisher)
	}
	name := p.bounds.admit("topic", topic)
	known, _ := p.topics.LoadOrStore(name, &publisher{topic: name, errors: make([]atomic.Uint64, len(kinds)+1)})
	return known.(*publisher)
}

// done is told of every publish.
func (p *publishers) done(_ context.Context, e ferry.Event) {
	t := p.of(topicOf(e))
	if e.Err != nil {
		t.errors[kindOf(e.Err)].Add(1)
	} else {
		t.published.Add(1)
	}
	t.sum.Add(int64(e.Duration))
	t.buckets[worker.HistogramBucket(e.Duration)].Add(1)
}

// topicOf is the label of a publish. A topic whose name is not allowed is not told apart: whoever chooses it could use
// up the bounds with names, or write bytes that are no label.
func topicOf(e ferry.Event) string {
	if errors.Is(e.Err, ferry.ErrInvalid) && driver.CheckTopic(e.Topic) != nil {
		return other
	}
	return e.Topic
}

func kindOf(err error) int {
	for i, k := range kinds {
		if errors.Is(err, k.err) {
			return i
		}
	}
	return len(kinds)
}

func (p *publishers) collect(s *sheet, fs *families) {
	p.topics.Range(func(_, known any) bool {
		t := known.(*publisher)
		s.add(fs.published, float64(t.published.Load()), t.topic)
		for i := range t.errors {
			if n := t.errors[i].Load(); n > 0 {
				label := "other"
				if i < len(kinds) {
					label = kinds[i].label
				}
				s.add(fs.publishErrors, float64(n), t.topic, label)
			}
		}
		s.addHistogram(fs.publishDuration, t.durations(), t.topic)
		return true
	})
}

func (t *publisher) durations() worker.Histogram {
	h := worker.Histogram{Counts: make([]uint64, len(t.buckets)), Sum: time.Duration(t.sum.Load())}
	for i := range h.Counts {
		h.Counts[i] = t.buckets[i].Load()
	}
	return h
}

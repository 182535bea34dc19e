package prom

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/ferrymq/ferry/worker"
)

// Bounds of the classic buckets: each doubles the one before, from a millisecond to a minute. They are bounds of the
// native ones too, so that both are exact.
const (
	classicFirst = -10 // 2^-10 s
	classicLast  = 6   // 64 s
)

// histogram is a worker.Histogram as Prometheus reads it: classic, and native with the same buckets as ours.
type histogram struct {
	f      *family
	h      worker.Histogram
	labels []*dto.LabelPair
}

func newHistogram(f *family, h worker.Histogram, labels []string) prometheus.Metric {
	return &histogram{f: f, h: h, labels: prometheus.MakeLabelPairs(f.desc, labels)}
}

// Desc returns the description of the metric.
func (h *histogram) Desc() *prometheus.Desc { return h.f.desc }

// Write writes the metric.
func (h *histogram) Write(m *dto.Metric) error {
	out := &dto.Histogram{
		SampleCount: proto.Uint64(h.h.Count()), SampleSum: proto.Float64(h.h.Sum.Seconds()),
		Schema: proto.Int32(worker.HistogramSchema), ZeroThreshold: proto.Float64(bound(0)), ZeroCount: proto.Uint64(0),
	}
	h.writeClassic(out)
	h.writeNative(out)
	m.Label, m.Histogram = h.labels, out
	return nil
}

// bound is the upper bound of a bucket in seconds.
func bound(bucket int) float64 {
	return math.Exp2(float64(bucket+worker.HistogramFirst) / (1 << worker.HistogramSchema))
}

func (h *histogram) writeClassic(out *dto.Histogram) {
	var n uint64
	next := 0
	for exp := classicFirst; exp <= classicLast; exp++ {
		last := exp<<worker.HistogramSchema - worker.HistogramFirst
		for ; next <= last && next < len(h.h.Counts); next++ {
			n += h.h.Counts[next]
		}
		out.Bucket = append(out.Bucket,
			&dto.Bucket{CumulativeCount: proto.Uint64(n), UpperBound: proto.Float64(math.Exp2(float64(exp)))})
	}
}

// writeNative writes the buckets that are not empty as spans, each count as the difference to the one before. What is
// shorter than all buckets is zero.
func (h *histogram) writeNative(out *dto.Histogram) {
	if len(h.h.Counts) == 0 {
		out.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}} // says that it is native
		return
	}
	*out.ZeroCount = h.h.Counts[0]
	var before uint64
	end := int32(0) // behind the last span
	for i, n := range h.h.Counts[1:] {
		if n == 0 {
			continue
		}
		at := int32(i + 1 + worker.HistogramFirst)
		if k := len(out.PositiveSpan); k > 0 && at == end {
			*out.PositiveSpan[k-1].Length++
		} else {
			out.PositiveSpan = append(out.PositiveSpan, &dto.BucketSpan{Offset: proto.Int32(at - end), Length: proto.Uint32(1)})
		}
		out.PositiveDelta = append(out.PositiveDelta, int64(n)-int64(before))
		before, end = n, at+1
	}
	if len(out.PositiveSpan) == 0 {
		out.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}}
	}
}

package worker

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Buckets of durations: four to each doubling, from a microsecond to three days. Their bounds are powers of two of a
// second, as those of a Prometheus native histogram of schema 2 are, so that nothing is lost on the way there.
const (
	// HistogramSchema is the schema of the native histogram that has the same buckets.
	HistogramSchema = 2
	// HistogramFirst is the index that bucket 0 has there: it ends at 2^(-80/4) seconds.
	HistogramFirst = -80
	// HistogramBuckets is how many there are.
	HistogramBuckets = 153

	buckets = HistogramBuckets
)

// bounds are the upper bounds of the buckets.
var bounds = func() (all [buckets]time.Duration) {
	for i := range all {
		all[i] = time.Duration(math.Exp2(float64(i+HistogramFirst)/(1<<HistogramSchema)) * float64(time.Second))
	}
	return all
}()

// lowest is the first bucket that a duration of so many bits can be in.
var lowest = func() (all [65]int) {
	for n := range all {
		least := math.Exp2(float64(n - 1))
		for all[n] < buckets-1 && float64(bounds[all[n]]) < least {
			all[n]++
		}
	}
	return all
}()

// bucketOf is the bucket of a duration. What is longer than all of them is in the last.
func bucketOf(d time.Duration) int {
	i := lowest[bits.Len64(uint64(d))]
	for i < buckets-1 && d > bounds[i] {
		i++
	}
	return i
}

// middleOf is a duration in the middle of a bucket.
func middleOf(bucket int) time.Duration {
	if bucket == 0 {
		return bounds[0] / 2
	}
	return time.Duration(math.Sqrt(float64(bounds[bucket-1]) * float64(bounds[bucket])))
}

// histogram counts durations.
type histogram struct {
	buckets [buckets]uint64
	sum     time.Duration
	max     time.Duration
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.buckets[bucketOf(d)]++
	h.sum += d
	h.max = max(h.max, d)
}

func (h *histogram) merge(o *histogram) {
	if o.max == 0 && o.buckets[0] == 0 {
		return
	}
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.sum += o.sum
	h.max = max(h.max, o.max)
}

// report returns a copy, without the empty buckets at the end.
func (h *histogram) report() Histogram {
	n := buckets
	for n > 0 && h.buckets[n-1] == 0 {
		n--
	}
	if n == 0 {
		return Histogram{}
	}
	return Histogram{Counts: append([]uint64(nil), h.buckets[:n]...), Sum: h.sum, Max: h.max}
}

// Histogram counts durations by size. Those of several workers, or of several processes, can be added up.
type Histogram struct {
	// Counts are the durations in each bucket: Counts[i] of at most HistogramBound(i), and more than the bound before.
	// Buckets after the last are empty.
	Counts   []uint64
	Sum, Max time.Duration
}

// HistogramBound is the upper bound of a bucket.
func HistogramBound(bucket int) time.Duration {
	return bounds[min(max(bucket, 0), buckets-1)]
}

// HistogramBucket is the bucket of a duration.
func HistogramBucket(d time.Duration) int { return bucketOf(max(d, 0)) }

// Add adds what another histogram counted.
func (h *Histogram) Add(o Histogram) {
	if n := len(o.Counts) - len(h.Counts); n > 0 {
		h.Counts = append(h.Counts[:len(h.Counts):len(h.Counts)], make([]uint64, n)...)
	}
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Sum += o.Sum
	h.Max = max(h.Max, o.Max)
}

// Count is how many durations there are.
func (h Histogram) Count() uint64 {
	var n uint64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantiles tell how the durations are spread.
func (h Histogram) Quantiles() Quantiles {
	n := h.Count()
	if n == 0 {
		return Quantiles{}
	}
	return Quantiles{Mean: h.Sum / time.Duration(n), P50: h.quantile(0.50, n), P95: h.quantile(0.95, n),
		P99: h.quantile(0.99, n), Max: h.Max}
}

func (h Histogram) quantile(q float64, n uint64) time.Duration {
	rank := uint64(q * float64(n))
	var seen uint64
	for i, c := range h.Counts {
		if seen += c; seen > rank {
			return min(middleOf(i), h.Max)
		}
	}
	return h.Max
}

// MarshalText makes it short: sum and maximum in nanoseconds, then bucket:count of those that are not empty.
func (h Histogram) MarshalText() ([]byte, error) {
	if len(h.Counts) == 0 {
		return nil, nil
	}
	text := fmt.Appendf(nil, "%d %d", h.Sum, h.Max)
	for i, n := range h.Counts {
		if n > 0 {
			text = fmt.Appendf(text, " %d:%d", i, n)
		}
	}
	return text, nil
}

// UnmarshalText reads what MarshalText wrote.
func (h *Histogram) UnmarshalText(text []byte) error {
	*h = Histogram{}
	parts := strings.Fields(string(text))
	if len(parts) == 0 {
		return nil
	}
	bad := driver.NewError(driver.ErrInvalid, "that is no histogram", "it begins with sum and maximum in nanoseconds", nil)
	if len(parts) < 2 {
		return bad
	}
	var read Histogram
	for i, to := range []*time.Duration{&read.Sum, &read.Max} {
		n, err := strconv.ParseInt(parts[i], 10, 64)
		if err != nil {
			return bad
		}
		*to = time.Duration(n)
	}
	for _, part := range parts[2:] {
		at, count, _ := strings.Cut(part, ":")
		i, err := strconv.ParseUint(at, 10, 16)
		n, err2 := strconv.ParseUint(count, 10, 64)
		if err != nil || err2 != nil || i >= buckets {
			return bad
		}
		read.Add(Histogram{Counts: append(make([]uint64, i), n)})
	}
	*h = read
	return nil
}

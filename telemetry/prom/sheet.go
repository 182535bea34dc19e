package prom

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ferrymq/ferry/worker"
)

// sheet gathers the values of one scrape. What has the same labels is put together, so that what several workers, or
// several names that are not told apart, count is one series.
type sheet struct {
	bounds *bounds
	values map[string]*value
	order  []*value
	key    []byte // reused
}

type value struct {
	f         *family
	labels    []string
	n         float64
	histogram *worker.Histogram
	held      *hold
}

// hold is what a summary of held locks has.
type hold struct {
	count uint64
	sum   float64
}

func newSheet(b *bounds) *sheet { return &sheet{bounds: b, values: map[string]*value{}} }

// at returns the value of some labels. Names beyond their bounds are other. What is no text is made one before labels
// are compared.
func (s *sheet) at(f *family, labels []string) *value {
	s.key = append(s.key[:0], f.name...)
	for i, name := range f.labels {
		labels[i] = s.bounds.admit(name, strings.ToValidUTF8(labels[i], "\ufffd"))
		s.key = append(append(s.key, 0xff), labels[i]...)
	}
	v := s.values[string(s.key)]
	if v == nil {
		v = &value{f: f, labels: labels}
		s.values[string(s.key)] = v
		s.order = append(s.order, v)
	}
	return v
}

func (s *sheet) add(f *family, n float64, labels ...string) {
	v := s.at(f, labels)
	if f.fold == most {
		v.n = max(v.n, n)
		return
	}
	v.n += n
}

// addSome leaves out what never happened, where many topics have none of it and nobody asks for the first one.
func (s *sheet) addSome(f *family, n float64, labels ...string) {
	if n != 0 {
		s.add(f, n, labels...)
	}
}

func (s *sheet) addHistogram(f *family, h worker.Histogram, labels ...string) {
	v := s.at(f, labels)
	if v.histogram == nil {
		v.histogram = new(worker.Histogram)
	}
	v.histogram.Add(h)
}

func (s *sheet) addHold(f *family, count uint64, seconds float64, labels ...string) {
	v := s.at(f, labels)
	if v.held == nil {
		v.held = new(hold)
	}
	v.held.count += count
	v.held.sum += seconds
}

// send hands everything to Prometheus.
func (s *sheet) send(ch chan<- prometheus.Metric) {
	for _, v := range s.order {
		switch {
		case v.histogram != nil:
			ch <- newHistogram(v.f, *v.histogram, v.labels)
		case v.held != nil:
			ch <- prometheus.MustNewConstSummary(v.f.desc, v.held.count, v.held.sum, nil, v.labels...)
		default:
			ch <- prometheus.MustNewConstMetric(v.f.desc, v.f.kind, v.n, v.labels...)
		}
	}
}

package main

import (
	"context"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// meter counts what a broker's statistics do not tell: failed attempts, and how long messages wait for a handler.
type meter struct {
	mu     sync.Mutex
	topics map[string]*topicMeter
}

type topicMeter struct {
	failed int64
	waits  *hdrhistogram.WindowedHistogram // in microseconds, over the newest waitWindows ticks
}

const waitWindows = 10

func newMeter() *meter { return &meter{topics: map[string]*topicMeter{}} }

func (m *meter) hooks() ferry.Hooks {
	return ferry.Hooks{
		Started: func(_ context.Context, e ferry.Event) {
			if e.Delivery.Cause == driver.CauseFirst && e.Delivery.Delay != driver.Hold {
				m.waited(e.Topic, time.Since(due(e.Delivery.Message)))
			}
		},
		Failed: func(_ context.Context, e ferry.Event) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.topic(e.Topic).failed++
		},
	}
}

// due returns when a message became ready.
func due(m *ferry.Message) time.Time {
	switch {
	case m.At.After(m.PublishedAt):
		return m.At
	case m.Delay > 0:
		return m.PublishedAt.Add(m.Delay)
	}
	return m.PublishedAt
}

func (m *meter) waited(topic string, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.topic(topic).waits.Current
	_ = h.RecordValue(min(max(d.Microseconds(), 1), h.HighestTrackableValue())) // cannot be out of range
}

// topic needs m.mu.
func (m *meter) topic(name string) *topicMeter {
	t := m.topics[name]
	if t == nil {
		t = &topicMeter{waits: hdrhistogram.NewWindowed(waitWindows, 1, time.Hour.Microseconds(), 2)}
		m.topics[name] = t
	}
	return t
}

// tick forgets the oldest window of waits.
func (m *meter) tick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.topics {
		t.waits.Rotate()
	}
}

// read returns the failed attempts of a topic, and the 95th percentile of its recent waits.
func (m *meter) read(topic string) (failed int64, p95 time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.topic(topic)
	return t.failed, time.Duration(t.waits.Merge().ValueAtQuantile(95)) * time.Microsecond
}

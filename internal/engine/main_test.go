package engine

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testOptions() Options {
	return Options{
		Capabilities: driver.Capabilities{
			Driver: "test", MinLease: time.Second, DefaultLease: 10 * time.Second, IDWindow: time.Minute, MaxBody: 1 << 20,
			History: driver.HistoryKept, Durability: driver.InMemory, Levels: []driver.Durability{driver.InMemory},
		},
		MaxMessages: 10_000_000, MaxIDs: 1000, MaxDedup: 1000,
	}
}

// open returns an engine that is closed, and found intact, when the test ends.
func open(t testing.TB) *Engine {
	e := New(testOptions())
	t.Cleanup(func() {
		audit(t, e)
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

func publish(t testing.TB, e *Engine, msgs ...*driver.Message) {
	t.Helper()
	if _, err := e.Publish(context.Background(), msgs, driver.PublishOptions{}); err != nil {
		t.Fatalf("Publish: %v", err)
	}
}

func subscribe(t testing.TB, e *Engine, o driver.SubscribeOptions) *subscription {
	t.Helper()
	if o.Topic == "" {
		o.Topic = "t"
	}
	if o.Instance == "" {
		o.Instance = "test"
	}
	s, err := e.Subscribe(context.Background(), o)
	if err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	return s.(*subscription)
}

// take receives what can be claimed now, up to most.
func take(t testing.TB, s *subscription, most int) []*driver.Delivery {
	t.Helper()
	now := s.e.now()
	s.t.mu.Lock()
	s.t.advance(now)
	claims := s.claim(most, now)
	s.t.unlock(now)
	if len(claims) == 0 {
		return nil
	}
	return s.deliver(claims, nil, now)
}

func settle(t testing.TB, s *subscription, o driver.Outcome, after time.Duration, ds ...*driver.Delivery) {
	t.Helper()
	ss := make([]driver.Settlement, len(ds))
	for i, d := range ds {
		ss[i] = driver.Settlement{Delivery: d, Outcome: o, After: after, Failure: &driver.Failure{Error: "failed"}}
	}
	for i, err := range s.Settle(context.Background(), ss) {
		if err != nil {
			t.Fatalf("settle %s of %s: %v", o, ds[i].ID, err)
		}
	}
}

func topicOf(e *Engine, name string) *topic {
	v, _ := e.topics.Load(name)
	return v.(*topic)
}

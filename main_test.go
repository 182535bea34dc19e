package ferry_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newBroker(t testing.TB, d driver.Driver, o ferry.Options) *ferry.Broker {
	t.Helper()
	if d == nil {
		d = newMemory(t, memory.Options{})
	}
	b, err := ferry.New(d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

// receive claims up to max messages of a topic that are ready now, and acknowledges them.
func receive(t testing.TB, b *ferry.Broker, topic string, max int) []*ferry.Delivery {
	t.Helper()
	ctx := context.Background()
	s, err := b.Driver().Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Instance: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(ctx) }()
	ds, err := s.Receive(ctx, max)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range ds {
		for _, err := range s.Settle(ctx, []driver.Settlement{{Delivery: d}}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return ds
}

// newMemory returns an empty broker in memory.
func newMemory(t testing.TB, o memory.Options) *memory.Driver {
	t.Helper()
	d, err := memory.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

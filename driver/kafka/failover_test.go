//go:build failover

package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// TestBrokerKilled kills each of three brokers in turn while messages flow: what was acknowledged is handled, in order.
func TestBrokerKilled(t *testing.T) {
	t.Parallel()
	const messages, keys = 600, 20
	c := kafkatest.Three(t)
	opened := func() *kafka.Driver {
		d, err := kafka.New(t.Context(), kafka.Options{Brokers: c.Addrs(), Partitions: 6, InternalPartitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	producer := opened()
	defer end(t, producer)
	if got := producer.Capabilities().Durability; got != driver.Replicated(1) {
		t.Errorf("a publish survives %s on three brokers", got)
	}
	publish(t, producer, message("first", "k0"))
	w := &witness{last: map[string]string{}, seen: map[string]int{}}
	stop := work(t, w, opened(), "w")
	accepted, unknown := 1, 0
	for i := range messages {
		if i%(messages/3) == messages/6 {
			c.Brokers[i*3/messages].Kill()
		}
		if i%(messages/3) == messages/3-1 {
			if err := c.Brokers[i*3/messages].Restart(); err != nil {
				t.Fatal(err)
			}
		}
		switch err := publishWithin(t, producer, message(fmt.Sprintf("m%06d", i), fmt.Sprint("k", i%keys))); {
		case err == nil:
			accepted++
		case errors.Is(err, driver.ErrUnknown), errors.Is(err, driver.ErrNotApplied):
			unknown++
		default:
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); w.count() < accepted && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	again := 0
	for _, n := range w.seen {
		again += n - 1
	}
	t.Logf("%d accepted, %d unknown, %d handled, %d again", accepted, unknown, len(w.seen), again)
	if len(w.seen) < accepted || len(w.seen) > accepted+unknown {
		t.Errorf("%d messages were handled, of %d accepted and %d unknown", len(w.seen), accepted, unknown)
	}
	for _, complaint := range w.disorder {
		t.Error(complaint)
	}
}

func publishWithin(t *testing.T, d driver.Driver, m *driver.Message) error {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := d.Publish(ctx, []*driver.Message{m}, driver.PublishOptions{})
	return err
}

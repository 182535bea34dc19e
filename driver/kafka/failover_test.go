package kafka_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// killsEnv says how many of three brokers TestBrokerKilled kills, one after the other: 1 without it.
const killsEnv = "FERRY_FAILOVER_KILLS"

// TestBrokerKilled kills brokers of three in turn while messages flow and a value is counted up: what was acknowledged
// is handled, in order, and each increment is made once. It is not parallel: that would be four brokers at once.
func TestBrokerKilled(t *testing.T) {
	const keys = 20
	kills, err := strconv.Atoi(cmp.Or(os.Getenv(killsEnv), "1"))
	if err != nil || kills < 1 || kills > 3 {
		t.Fatalf("%s is %q, want 1 to 3", killsEnv, os.Getenv(killsEnv))
	}
	const each = 200
	messages := kills * each
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
	put(t, producer, driver.Write{Name: "counter", Data: []byte("0")})
	counted := count(t, producer, "c")
	accepted, unknown := 1, 0
	for i := range messages {
		if i%each == each/2 {
			c.Brokers[i/each].Kill()
		}
		if i%each == each-1 {
			if err := c.Brokers[i/each].Restart(); err != nil {
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
	fresh := opened()
	defer end(t, fresh)
	if made, v := counted(), get(t, fresh, "counter"); number(v.Data) != made {
		t.Errorf("the counter is %s after %d increments", v.Data, made)
	} else {
		t.Logf("%d increments, the last by leader epoch %d", made, v.Revision>>40)
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

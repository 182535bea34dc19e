package kafka_test

import (
	"crypto/rand"
	"fmt"
	random "math/rand/v2"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// many publishes messages of random priorities without keys to one partition, so that what is claimed lies scattered in
// it.
func many(t *testing.T, d driver.Driver, n int) {
	t.Helper()
	ms, dice := make([]*driver.Message, n), random.New(random.NewPCG(1, 1))
	for i := range ms {
		ms[i] = message(fmt.Sprint("m", i), "")
		ms[i].Priority = driver.Priority(dice.IntN(4) - 1)
	}
	publish(t, d, ms...)
}

// greedy is a subscription that may hold so many.
func greedy(t *testing.T, d driver.Driver, n int) driver.Subscription {
	t.Helper()
	s, err := d.Subscribe(t.Context(), driver.SubscribeOptions{Topic: "orders", Instance: "x", Lease: time.Minute,
		MaxInflight: n})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// take receives so many, whole batches at a time.
func take(t *testing.T, s driver.Subscription, n int) (all []*driver.Delivery) {
	t.Helper()
	for len(all) < n {
		ds, err := s.Receive(t.Context(), n-len(all))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ds...)
	}
	return all
}

// TestGivenBackIsTold: a worker that stops gives back all it had fetched ahead. However many they are and wherever they
// lie, the next one is told of each, also of what one before had given back and nobody got since; and what is done
// stays done. What is committed beside the offset has room for the smaller of these numbers only.
func TestGivenBackIsTold(t *testing.T) {
	t.Parallel()
	for _, ahead := range []int{1500, 5000} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			t.Parallel()
			givenBackIsTold(t, 3*ahead, ahead)
		})
	}
}

func givenBackIsTold(t *testing.T, messages, ahead int) {
	c, namespace := fake(t), "g"+rand.Text()[:10]+"."
	d, _ := mortal(t, c, namespace)
	many(t, d, messages)
	given, acked := map[string]bool{}, map[string]bool{}
	for round := range 2 {
		s := greedy(t, d, ahead)
		var ack []driver.Settlement
		for i, x := range take(t, s, ahead) {
			if want := given[x.ID]; acked[x.ID] || want != (x.Cause == driver.CauseReleased) {
				t.Fatalf("round %d gets %s as %s; acked %v, given back %v", round, x.ID, x.Cause, acked[x.ID], want)
			}
			if i%3 == 0 {
				ack = append(ack, driver.Settlement{Delivery: x})
				acked[x.ID] = true
				delete(given, x.ID)
			} else {
				given[x.ID] = true
			}
		}
		for _, err := range s.Settle(t.Context(), ack) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	left := messages - len(acked)
	for _, x := range take(t, greedy(t, d, left), left) {
		if want := given[x.ID]; acked[x.ID] || want != (x.Cause == driver.CauseReleased) {
			t.Errorf("%s comes as %s; acked %v, given back %v", x.ID, x.Cause, acked[x.ID], want)
		}
	}
}

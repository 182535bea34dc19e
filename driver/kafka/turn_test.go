package kafka_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
)

// runOf is the first run of a key: two messages that are held together.
func runOf(t *testing.T, d *kafka.Driver) (s driver.Subscription, head, behind *driver.Delivery) {
	t.Helper()
	publish(t, d, message("head", "k"), message("behind", "k"))
	s, err := d.Subscribe(t.Context(), driver.SubscribeOptions{Topic: "orders", Instance: "x", Lease: time.Minute,
		MaxRun: 2})
	if err != nil {
		t.Fatal(err)
	}
	ds := take(t, s, 2)
	return s, ds[0], ds[1]
}

// TestOutcomesStandInOrder: what the head of a key needs cannot be stored. What is behind it is not settled before it,
// neither in the same call nor in a later one, and is when the head has been.
func TestOutcomesStandInOrder(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		topic   string
		outcome driver.Outcome
		emit    []*driver.Message
	}{
		"dead letter":    {"_ferry.dead", driver.Dead, nil},
		"follow-up":      {".next", driver.Ack, []*driver.Message{{ID: "next", Topic: "next"}}},
		"end of a retry": {"_ferry.retry", driver.Ack, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fake(t)
			d := openFake(t, c)
			s, head, behind := runOf(t, d)
			if name == "end of a retry" {
				settle(t, s, head, driver.Retry, 0)
				ds := take(t, s, 2)
				head, behind = ds[0], ds[1]
			}
			publish(t, d, &driver.Message{ID: "first", Topic: "next"})
			failed := refuseProduce(c, x.topic, kerr.TopicAuthorizationFailed, 1)
			first := driver.Settlement{Delivery: head, Outcome: x.outcome, Emit: x.emit, Failure: &driver.Failure{}}
			errs := s.Settle(t.Context(), []driver.Settlement{first, {Delivery: behind}})
			if failed.Load() != 1 || errs[0] == nil || !errors.Is(errs[1], driver.ErrNotApplied) {
				t.Fatalf("the head: %v; what is behind it: %v", errs[0], errs[1])
			}
			if err := s.Settle(t.Context(), []driver.Settlement{{Delivery: behind}})[0]; !errors.Is(err, driver.ErrNotApplied) {
				t.Errorf("what is behind it, alone: %v", err)
			}
			for i, err := range s.Settle(t.Context(), []driver.Settlement{first, {Delivery: behind}}) {
				if err != nil {
					t.Errorf("the same again: %d of the run: %v", i, err)
				}
			}
		})
	}
}

// TestOutcomeWaitsForItsTurn: the dead letter of the head of a key is on its way while what is behind it is settled by
// somebody else. It waits, and is refused when the head could not be settled.
func TestOutcomeWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	s, head, behind := runOf(t, d)
	sent, answer := make(chan struct{}), make(chan struct{})
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if !strings.Contains(topicOf(c, req.(*kmsg.ProduceRequest)), "_ferry.dead") {
			c.KeepControl()
			return nil, nil, false
		}
		refuseProduce(c, "_ferry.dead", kerr.TopicAuthorizationFailed, 1)
		c.SleepControl(func() { close(sent); <-answer })
		return nil, nil, false
	})
	results := make(chan error, 2)
	go func() {
		results <- s.Settle(t.Context(),
			[]driver.Settlement{{Delivery: head, Outcome: driver.Dead, Failure: &driver.Failure{}}})[0]
	}()
	<-sent
	go func() {
		close(answer)
		results <- s.Settle(t.Context(), []driver.Settlement{{Delivery: behind}})[0]
	}()
	for range 2 {
		if err := <-results; err == nil {
			t.Error("the head is not settled, and neither is what is behind it; one of them says so")
		}
	}
}

// TestRefusedHeadIsLost: nobody vouches for the owner when the head of a key is settled or extended, so that its holder
// hears that it lost it. When somebody does again, what is behind it is lost too: the head comes again first.
func TestRefusedHeadIsLost(t *testing.T) {
	t.Parallel()
	for name, speak := range map[string]func(*testing.T, driver.Subscription, *driver.Delivery) error{
		"settle": func(t *testing.T, s driver.Subscription, x *driver.Delivery) error {
			return s.Settle(t.Context(), []driver.Settlement{{Delivery: x}})[0]
		},
		"extend": func(t *testing.T, s driver.Subscription, x *driver.Delivery) error {
			return s.Extend(t.Context(), []*driver.Delivery{x})[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openFake(t, fake(t))
			s, head, behind := runOf(t, d)
			for {
				d.Disown("orders", driver.DefaultGroup)
				err := speak(t, s, head)
				if errors.Is(err, driver.ErrLeaseLost) {
					break
				}
				if name == "settle" {
					t.Fatalf("the head is settled: %v", err) // it was vouched for again in between: not seen
				}
			}
			for !d.Vouched("orders", driver.DefaultGroup) {
				time.Sleep(10 * time.Millisecond)
			}
			if err := s.Settle(t.Context(), []driver.Settlement{{Delivery: behind}})[0]; !errors.Is(err, driver.ErrLeaseLost) {
				t.Errorf("what is behind a lost head is settled: %v", err)
			}
			if x := receive(t, s); x.ID != "head" {
				t.Errorf("%s comes first", x.ID)
			}
		})
	}
}

package kafka_test

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// TestLateWritesOfAZombie: an owner that was stopped for longer than its session writes a retry and a commit when it goes on. The next owner has
// settled the message meanwhile: neither it nor those after it are disturbed.
//
// Lesson: L41
func TestLateWritesOfAZombie(t *testing.T) {
	t.Parallel()
	c, namespace := kafkatest.Shared(t), "z"+rand.Text()[:10]+"."
	w := &wire{}
	zombie, err := kafka.New(t.Context(), kafka.Options{Brokers: c.Addrs(), Namespace: namespace, Partitions: 1, InternalPartitions: 1, Dial: w.dial})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, zombie, message("a", "k"), message("b", "k"))
	zs := subscribe(t, zombie, "zombie")
	x := receive(t, zs)
	release := w.hold()
	defer release()
	stopped := time.Now()
	answer := make(chan error, 1)
	go func() {
		answer <- zs.Settle(t.Context(), []driver.Settlement{{Delivery: x, Outcome: driver.Retry, After: time.Millisecond, Failure: &driver.Failure{Reason: driver.ReasonFatal}}})[0]
	}()
	heir := open(t, c, namespace)
	hs := subscribe(t, heir, "heir")
	y := receive(t, hs)
	t.Logf("delivered again %v after its owner stopped", time.Since(stopped))
	if y.ID != "a" || y.Attempt != 1 {
		t.Fatalf("received %s, attempt %d", y.ID, y.Attempt)
	}
	settle(t, hs, y, driver.Ack, 0)
	release()
	if err := <-answer; err == nil {
		t.Error("the zombie believes that its retry stands")
	} else if !errors.Is(err, driver.ErrLeaseLost) && !errors.Is(err, driver.ErrUnknown) && !errors.Is(err, driver.ErrNotApplied) {
		t.Errorf("the zombie is told %v", err)
	}
	end(t, zombie)
	z := receive(t, hs)
	if z.ID != "b" || z.Attempt != 1 {
		t.Errorf("received %s, attempt %d after the zombie wrote; want b", z.ID, z.Attempt)
	}
	settle(t, hs, z, driver.Ack, 0)
	end(t, heir)
	next := open(t, c, namespace)
	defer end(t, next)
	ns := subscribe(t, next, "next")
	publish(t, next, message("c", "k"))
	if x := receive(t, ns); x.ID != "c" {
		t.Errorf("received %s, attempt %d, which was settled", x.ID, x.Attempt)
	} else {
		settle(t, ns, x, driver.Ack, 0)
	}
	for _, id := range []string{"a", "b"} {
		state(t, next, id, "")
	}
}

package kafka_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/stall"
)

// victimEnv makes the test binary a consumer that claims and waits for its death.
const victimEnv = "FERRY_KAFKA_VICTIM"

// victim claims two messages, says so, and never settles them.
func victim(where string) error {
	broker, namespace, _ := strings.Cut(where, " ")
	d, err := kafka.New(context.Background(), kafka.Options{Brokers: []string{broker}, Namespace: namespace, Partitions: 3,
		InternalPartitions: 1})
	if err != nil {
		return err
	}
	s, err := d.Subscribe(context.Background(), driver.SubscribeOptions{Topic: "orders", Instance: "victim", MaxRun: 2})
	if err != nil {
		return err
	}
	for claimed := 0; claimed < 2; {
		ds, err := s.Receive(context.Background(), 2)
		if err != nil {
			return err
		}
		claimed += len(ds)
	}
	fmt.Println("claimed")
	select {}
}

// TestKilledConsumer: what a process held that died by kill -9 is redelivered within the session, and counted.
func TestKilledConsumer(t *testing.T) {
	t.Parallel()
	c, namespace := kafkatest.Shared(t), "c"+rand.Text()[:10]+"."
	d := open(t, c, namespace)
	defer end(t, d)
	publish(t, d, message("m1", "k"), message("m2", "k"), message("m3", "k"))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"="+c.Addrs()[0]+" "+namespace)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	for deadline := time.Now().Add(time.Minute); err == nil; time.Sleep(10 * time.Millisecond) {
		var st driver.TopicStats // others see who is held once that is committed
		if st, err = d.Stats(t.Context(), "orders"); err == nil && st.Groups[0].Inflight == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("another process counts %+v, want 2 in flight", st)
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	if err != nil || line != "claimed\n" {
		t.Fatalf("the victim says %q: %v", line, err)
	}
	machine, killed := stall.Watch(t), time.Now()
	s := subscribe(t, d, "heir")
	for i, want := range []struct {
		id         string
		deliveries int
	}{{"m1", 2}, {"m2", 2}, {"m3", 1}} {
		ds, err := s.Receive(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			t.Logf("redelivered %v after kill -9", time.Since(killed))
			// 7 s, but for a machine that is busy with other tests
			if waited := machine.Elapsed(killed); waited > 20*time.Second {
				t.Errorf("redelivered only after %v", waited)
			}
		}
		if got := ds[0]; got.ID != want.id || got.Deliveries != want.deliveries || got.Attempt != 1 {
			t.Errorf("received %s with attempt %d, deliveries %d; want %+v", got.ID, got.Attempt, got.Deliveries, want)
		}
		if err := s.Settle(t.Context(), []driver.Settlement{{Delivery: ds[0]}})[0]; err != nil {
			t.Error(err)
		}
	}
}

// TestCrashLosesNothing: an owner whose network is cut held one message, had settled one behind it, and had one wait
// for a retry. The next owner gets the first again, counted, not the second, and the third with its attempt.
//
// Lesson: R5, L24, L29
func TestCrashLosesNothing(t *testing.T) {
	t.Parallel()
	c, namespace := kafkatest.Shared(t), "c"+rand.Text()[:10]+"."
	w := &wire{}
	dying, err := kafka.New(t.Context(), kafka.Options{Brokers: c.Addrs(), Namespace: namespace, Partitions: 1,
		InternalPartitions: 1, Dial: w.dial})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, dying, message("held", "1"), message("acked", "2"), message("failed", "3"), message("unread", "1"))
	s := subscribe(t, dying, "dying")
	receive(t, s) // held
	settle(t, s, receive(t, s), driver.Ack, 0)
	settle(t, s, receive(t, s), driver.Retry, time.Millisecond)
	watcher := open(t, c, namespace)
	defer end(t, watcher)
	// what is settled behind what is held is committed beside the offset
	for deadline := time.Now().Add(time.Minute); ; {
		st, err := watcher.Stats(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		if g := st.Groups[0]; g.Acked == 1 && g.Inflight >= 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("another process sees %+v", st.Groups[0])
		}
	}
	w.cut()
	cut := time.Now()
	heir := subscribe(t, watcher, "heir")
	want := map[string]int{"held": 1, "failed": 2, "unread": 1} // attempts
	for len(want) > 0 {
		x := receive(t, heir)
		if attempt, ok := want[x.ID]; !ok || x.Attempt != attempt {
			t.Errorf("received %s, attempt %d; missing %v", x.ID, x.Attempt, want)
		}
		if x.ID == "held" {
			t.Logf("delivered again %v after the network was cut", time.Since(cut))
			if x.Deliveries != 2 || x.Cause != driver.CauseLeaseExpired {
				t.Errorf("what was held comes with deliveries %d, %s", x.Deliveries, x.Cause)
			}
		}
		delete(want, x.ID)
		settle(t, heir, x, driver.Ack, 0)
	}
	end(t, dying)
	state(t, watcher, "acked", "")
}

// TestReconnects: after the network was away for longer than a session, publishing and consuming go on by themselves,
// and meanwhile nothing spins.
//
// Lesson: L64
func TestReconnects(t *testing.T) {
	t.Parallel()
	c, namespace := kafkatest.Shared(t), "c"+rand.Text()[:10]+"."
	w := &wire{}
	d, err := kafka.New(t.Context(), kafka.Options{Brokers: c.Addrs(), Namespace: namespace, Partitions: 1,
		InternalPartitions: 1, Dial: w.dial})
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, d)
	publish(t, d, message("before", "k"))
	s := subscribe(t, d, "x")
	settle(t, s, receive(t, s), driver.Ack, 0)
	w.cut()
	const away = 8 * time.Second // longer than the session
	time.Sleep(away)
	if n := w.mend(); n > 100*int(away/time.Second) {
		t.Errorf("%d connections were tried in %v", n, away)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := d.Publish(ctx, []*driver.Message{message("after", "k")}, driver.PublishOptions{})
		cancel()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("publishing after a reconnect: %v", err)
		}
	}
	for {
		x := receive(t, s)
		settle(t, s, x, driver.Ack, 0)
		if x.ID == "after" {
			return
		}
		if x.ID != "before" { // its commit may not have got through
			t.Fatalf("received %s", x.ID)
		}
	}
}

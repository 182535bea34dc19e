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
)

// victimEnv makes the test binary a consumer that claims and waits for its death.
const victimEnv = "FERRY_KAFKA_VICTIM"

// victim claims two messages, says so, and never settles them.
func victim(where string) error {
	broker, namespace, _ := strings.Cut(where, " ")
	d, err := kafka.New(context.Background(), kafka.Options{Brokers: []string{broker}, Namespace: namespace, Partitions: 3, InternalPartitions: 1})
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
	time.Sleep(500 * time.Millisecond) // it is committed who is held
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
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	if err != nil || line != "claimed\n" {
		t.Fatalf("the victim says %q: %v", line, err)
	}
	killed := time.Now()
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
			if waited := time.Since(killed); waited > 20*time.Second { // 7 s, but for a machine that is busy with other tests
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

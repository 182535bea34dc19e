package kafka_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
)

// TestPartitionsAdded: somebody adds a partition to a topic while a group consumes it. What is in the others goes on,
// what comes into the new one is consumed too, with retries, and it is reported.
func TestPartitionsAdded(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("before", "k"))
	s := subscribe(t, d, "x")
	settle(t, s, receive(t, s), driver.Ack, 0)
	cl, name := addPartition(t, c, d)
	if err := s.Close(t.Context()); err != nil { // who joins sees the new partition; others after some minutes
		t.Fatal(err)
	}
	s = subscribe(t, d, "x")
	var want []string
	for i := range 4 {
		publish(t, d, message(fmt.Sprint("m", i), "k"))
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: name, Partition: 1, Key: []byte("new"),
			Value: fmt.Append(nil, "n", i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint("m", i), fmt.Sprint("n", i))
	}
	left := map[string]bool{}
	for _, body := range want {
		left[body] = true
	}
	for len(left) > 0 {
		x := receive(t, s)
		if !left[string(x.Body)] {
			t.Errorf("received %q again, attempt %d", x.Body, x.Attempt)
		}
		if string(x.Body) == "n0" && x.Attempt == 1 {
			settle(t, s, x, driver.Retry, time.Millisecond)
			continue
		}
		delete(left, string(x.Body))
		settle(t, s, x, driver.Ack, 0)
	}
	findings, err := d.Diagnose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Subject == "orders" && f.Severity == driver.SeverityError {
			return
		}
	}
	t.Errorf("it is not reported: %+v", findings)
}

// TestPartitionAddedToAnOwner: what comes into a partition that was added is counted and listed by all. A member that
// is given one that nobody knew a moment ago keeps the others, and what it holds of them.
func TestPartitionAddedToAnOwner(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("held", "k"))
	s := subscribe(t, d, "x")
	held := receive(t, s)
	other, err := kafka.New(t.Context(), kafka.Options{Brokers: c.ListenAddrs(), Namespace: d.Namespace(), Partitions: 1,
		InternalPartitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, other)
	if _, err := other.Stats(t.Context(), "orders"); err != nil { // it knows the topic as it was
		t.Fatal(err)
	}
	cl, name := addPartition(t, c, d)
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: name, Partition: 1,
		Value: []byte("new")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for who, d := range map[string]*kafka.Driver{"the owner": d, "another": other} {
		seesAdded(t, who, d)
	}
	d.LookAgain("orders", driver.DefaultGroup)
	x := receive(t, s)
	if string(x.Body) != "new" {
		t.Fatalf("received %q, which is held: its partition was given up", x.Body)
	}
	settle(t, s, held, driver.Ack, 0)
	settle(t, s, x, driver.Ack, 0)
}

// seesAdded waits until a driver counts and lists what came into the new partition: it keeps what it knows of topics
// for 100 ms.
func seesAdded(t *testing.T, who string, d *kafka.Driver) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		st, err := d.Stats(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		page, err := d.Browse(t.Context(), driver.Query{Topic: "orders", Group: driver.DefaultGroup,
			State: driver.StateReady})
		if err != nil {
			t.Fatal(err)
		}
		if st.Messages == 2 && len(page.Entries) == 1 && string(page.Entries[0].Body) == "new" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s counts %d messages of 2, and lists %d", who, st.Messages, len(page.Entries))
		}
	}
}

// addPartition adds one to the topic past the driver, and returns a client that can write to it, and the name of the
// topic.
func addPartition(t *testing.T, c *kfake.Cluster, d *kafka.Driver) (*kgo.Client, string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	name := d.Namespace() + "orders"
	if resp, err := kadm.NewClient(cl).CreatePartitions(t.Context(), 1, name); err != nil || resp.Error() != nil {
		t.Fatal(err, resp.Error())
	}
	return cl, name
}

package kafka_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/stall"
)

// fake is a broker inside the test whose answers can be changed.
func fake(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func openFake(t *testing.T, c *kfake.Cluster) *kafka.Driver {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d, err := kafka.New(ctx, kafka.Options{Brokers: c.ListenAddrs(), Namespace: "f" + rand.Text()[:6] + ".", Partitions: 1,
		InternalPartitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, d) })
	return d
}

// TestCommitsThatFail: whatever the coordinator answers, what is settled is committed in the end, and nothing that is
// not.
func TestCommitsThatFail(t *testing.T) {
	t.Parallel()
	for _, failure := range []*kerr.Error{kerr.OffsetMetadataTooLarge, kerr.UnknownMemberID, kerr.FencedInstanceID,
		kerr.RebalanceInProgress, kerr.CoordinatorNotAvailable, kerr.RequestTimedOut} {
		t.Run(failure.Message, func(t *testing.T) {
			t.Parallel()
			c := fake(t)
			d := openFake(t, c)
			publish(t, d, message("a", "k"), message("b", "k"))
			s := subscribe(t, d, "x")
			first := receive(t, s)
			var failed atomic.Int32
			c.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
				if failed.Add(1) > 3 {
					return nil, nil, false
				}
				c.KeepControl()
				return refusedCommit(req.(*kmsg.OffsetCommitRequest), failure), nil, true
			})
			settle(t, s, first, driver.Ack, 0)
			second := receive(t, s)
			if second.ID != "b" {
				t.Errorf("received %s, want b", second.ID)
			}
			for deadline := time.Now().Add(time.Minute); failed.Load() < 4; {
				if time.Now().After(deadline) {
					t.Fatalf("only %d commits were tried", failed.Load())
				}
				time.Sleep(10 * time.Millisecond)
			}
			settle(t, s, second, driver.Ack, 0)
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			again := subscribe(t, d, "y")
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if ds, err := again.Receive(ctx, 1); err == nil {
				t.Errorf("%s was delivered again, although it was settled", ds[0].ID)
			}
		})
	}
}

func refusedCommit(req *kmsg.OffsetCommitRequest, failure *kerr.Error) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
	for _, rt := range req.Topics {
		t := kmsg.NewOffsetCommitResponseTopic()
		t.Topic, t.TopicID = rt.Topic, rt.TopicID
		for _, rp := range rt.Partitions {
			p := kmsg.NewOffsetCommitResponseTopicPartition()
			p.Partition, p.ErrorCode = rp.Partition, failure.Code
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// refuseProduce answers a produce request of topics with a part in their names, until it is stopped.
func refuseProduce(c *kfake.Cluster, part string, failure *kerr.Error, times int32) *atomic.Int32 {
	var failed atomic.Int32
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		req := kreq.(*kmsg.ProduceRequest)
		c.KeepControl()
		if failed.Load() >= times || len(req.Topics) == 0 || !strings.Contains(topicOf(c, req), part) {
			return nil, nil, false
		}
		failed.Add(1)
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, rt := range req.Topics {
			t := kmsg.NewProduceResponseTopic()
			t.Topic, t.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				p := kmsg.NewProduceResponseTopicPartition()
				p.Partition, p.ErrorCode = rp.Partition, failure.Code
				t.Partitions = append(t.Partitions, p)
			}
			resp.Topics = append(resp.Topics, t)
		}
		return resp, nil, true
	})
	return &failed
}

func topicOf(c *kfake.Cluster, req *kmsg.ProduceRequest) string {
	if name := req.Topics[0].Topic; name != "" {
		return name
	}
	if info := c.TopicIDInfo(req.Topics[0].TopicID); info != nil {
		return info.Topic
	}
	return ""
}

// TestStoreThenSettle: while the retry log cannot be written a retry is not done, and the message is not lost.
//
// Lesson: R4, L29
func TestStoreThenSettle(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("a", "k"))
	s := subscribe(t, d, "x")
	x := receive(t, s)
	failed := refuseProduce(c, "_ferry.retry", kerr.TopicAuthorizationFailed, 1)
	err := s.Settle(t.Context(), []driver.Settlement{{Delivery: x, Outcome: driver.Retry, After: time.Millisecond,
		Failure: &driver.Failure{Reason: driver.ReasonFatal}}})[0]
	if err == nil || failed.Load() != 1 {
		t.Fatalf("a retry that was not stored: %v", err)
	}
	if err := s.Settle(t.Context(), []driver.Settlement{{Delivery: x, Outcome: driver.Retry, After: time.Millisecond,
		Failure: &driver.Failure{Reason: driver.ReasonFatal}}})[0]; err != nil {
		t.Fatalf("the same again: %v", err)
	}
	if y := receive(t, s); y.ID != "a" || y.Attempt != 2 {
		t.Errorf("received %s, attempt %d", y.ID, y.Attempt)
	}
}

// TestNotEnoughReplicas: the client tries again by itself, and the publish is stored once.
func TestNotEnoughReplicas(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("first", "k"))
	failed := refuseProduce(c, ".orders", kerr.NotEnoughReplicas, 2)
	publish(t, d, message("a", "k"))
	if failed.Load() != 2 {
		t.Errorf("%d of 2 refusals were seen", failed.Load())
	}
	s := subscribe(t, d, "x")
	for _, want := range []string{"first", "a"} {
		x := receive(t, s)
		if x.ID != want {
			t.Errorf("received %s, want %s", x.ID, want)
		}
		settle(t, s, x, driver.Ack, 0)
	}
}

// TestTooLarge: a record over the limit of the topic is refused with a hint, and others are not affected.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("first", "k"))
	refuseProduce(c, ".orders", kerr.MessageTooLarge, 1)
	_, err := d.Publish(t.Context(), []*driver.Message{message("big", "k")}, driver.PublishOptions{})
	hinted(t, err, driver.ErrTooLarge)
	big := message("huge", "k")
	big.Body = make([]byte, d.Capabilities().MaxBody+1)
	_, err = d.Publish(t.Context(), []*driver.Message{big}, driver.PublishOptions{})
	hinted(t, err, driver.ErrTooLarge)
	publish(t, d, message("after", "k"))
}

func hinted(t *testing.T, err, kind error) {
	t.Helper()
	var e *driver.Error
	if !errors.Is(err, kind) || !errors.As(err, &e) || e.Hint == "" {
		t.Errorf("got %v, want %v with a hint", err, kind)
	}
}

// TestBadStarts: what is wrong shows when the driver is opened, soon and with a hint.
func TestBadStarts(t *testing.T) {
	t.Parallel()
	addr := fake(t).ListenAddrs()
	long := fake(t, kfake.BrokerConfigs(map[string]string{"group.min.session.timeout.ms": "20000"})).ListenAddrs()
	for name, c := range map[string]struct {
		o    kafka.Options
		kind error
	}{
		"no brokers":      {kafka.Options{}, driver.ErrInvalid},
		"nobody there":    {kafka.Options{Brokers: []string{"127.0.0.1:1"}}, driver.ErrNotApplied},
		"replicas":        {kafka.Options{Brokers: addr, Replicas: 3}, driver.ErrInvalid},
		"namespace":       {kafka.Options{Brokers: addr, Namespace: "a b"}, driver.ErrInvalid},
		"body":            {kafka.Options{Brokers: addr, MaxBody: 1 << 30}, driver.ErrInvalid},
		"partitions":      {kafka.Options{Brokers: addr, Partitions: 1 << 20}, driver.ErrInvalid},
		"session refused": {kafka.Options{Brokers: long, Session: 6 * time.Second}, driver.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			machine, start := stall.Watch(t), time.Now()
			d, err := kafka.New(ctx, c.o)
			if d != nil {
				end(t, d)
				t.Fatal("it opened")
			}
			hinted(t, err, c.kind)
			if took := machine.Elapsed(start); took > 15*time.Second {
				t.Errorf("it took %v to find out", took)
			}
		})
	}
}

// TestSessionOfTheBroker: a broker that allows only long sessions makes leases long.
func TestSessionOfTheBroker(t *testing.T) {
	t.Parallel()
	d := openFake(t, fake(t, kfake.BrokerConfigs(map[string]string{"group.min.session.timeout.ms": "20000"})))
	if c := d.Capabilities(); c.MinLease != 20*time.Second || c.DefaultLease != 20*time.Second {
		t.Errorf("the shortest lease is %v, the default %v; want the broker's 20 s", c.MinLease, c.DefaultLease)
	}
}

// TestDoctor: a topic with unsafe settings is found, with the command that mends it.
func TestDoctor(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("first", "k"))
	fs, err := d.Diagnose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		if f.Severity == driver.SeverityError {
			t.Errorf("a fresh cluster: %+v", f)
		}
	}
	name := d.Namespace() + "orders"
	if err := alter(t, c, name, "retention.ms", "60000"); err != nil {
		t.Fatal(err)
	}
	if fs, err = d.Diagnose(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		if f.Severity == driver.SeverityError && f.Subject == name && strings.Contains(f.Text, "retention.ms is 60000") &&
			strings.Contains(f.Hint, fmt.Sprintf("--entity-name %s --add-config 'retention.ms=[-1]'", name)) {
			return
		}
	}
	t.Errorf("retention.ms of 60 s was not reported: %+v", fs)
}

// TestSpilled: the bodies of many parked messages are not in memory, and come back whole and in order.
func TestSpilled(t *testing.T) {
	t.Parallel()
	const parked = 40 // of 900 KiB: more than is kept in memory
	d := openFake(t, fake(t))
	publish(t, d, message("head", "k"))
	s := subscribe(t, d, "x")
	settle(t, s, receive(t, s), driver.Retry, time.Hour)
	for i := range parked {
		m := message(fmt.Sprintf("m%03d", i), "k")
		m.Body, m.Headers = bytes.Repeat([]byte{byte(i)}, 900<<10), map[string]string{"n": m.ID}
		publish(t, d, m)
	}
	for deadline := time.Now().Add(time.Minute); d.Spilled("orders", driver.DefaultGroup) == 0 ||
		d.Unparked("orders", driver.DefaultGroup) <= parked; {
		if time.Now().After(deadline) {
			t.Fatalf("%d are parked, %d spilled", d.Unparked("orders", driver.DefaultGroup)-1,
				d.Spilled("orders", driver.DefaultGroup))
		}
		time.Sleep(10 * time.Millisecond)
	}
	last := fmt.Sprintf("m%03d", parked-1)
	if es, err := d.Get(t.Context(), target(last)); err != nil || len(es[0].Body) != 900<<10 ||
		es[0].Headers["n"] != last {
		t.Errorf("Get of a spilled message: %v", err)
	}
	if err := d.Move(t.Context(), []driver.Move{{Target: target("head")}})[0]; err != nil {
		t.Fatal(err)
	}
	settle(t, s, receive(t, s), driver.Ack, 0)
	for i := range parked {
		x := receive(t, s)
		if want := fmt.Sprintf("m%03d", i); x.ID != want || len(x.Body) != 900<<10 || x.Body[0] != byte(i) ||
			x.Headers["n"] != want {
			t.Fatalf("received %s with %d bytes, want %s whole", x.ID, len(x.Body), want)
		}
		settle(t, s, x, driver.Ack, 0)
	}
}

// TestForeignRejected: a record of a producer that does not know Ferry goes whole to the parse-error store when foreign
// ones are rejected.
func TestForeignRejected(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d, err := kafka.New(t.Context(), kafka.Options{Brokers: c.ListenAddrs(), Partitions: 1, InternalPartitions: 1,
		RejectForeign: true})
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, d)
	publish(t, d, message("ours", "k"))
	plain, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if err := plain.ProduceSync(t.Context(), &kgo.Record{Topic: "orders",
		Value: []byte("theirs")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	publish(t, d, message("after", "k"))
	s := subscribe(t, d, "x")
	for _, want := range []string{"ours", "after"} {
		x := receive(t, s)
		if x.ID != want {
			t.Errorf("received %s, want %s", x.ID, want)
		}
		settle(t, s, x, driver.Ack, 0)
	}
	for deadline := time.Now().Add(time.Minute); ; { // it is stored while others are delivered
		page, err := d.Browse(t.Context(), driver.Query{Topic: "orders", State: driver.StateInvalid})
		if err == nil && len(page.Entries) == 1 && string(page.Entries[0].Raw) == "theirs" {
			return
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the parse-error store has %+v, %v", page.Entries, err)
		}
	}
}

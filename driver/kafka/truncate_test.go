package kafka_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
)

// cutLogs lets brokers say that a topic's log has lost everything from an offset on since the last leader.
func cutLogs(c *kfake.Cluster, topic string, at int64) *atomic.Int32 {
	var asked atomic.Int32
	c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.OffsetForLeaderEpochRequest)
		if len(req.Topics) != 1 || req.Topics[0].Topic != topic {
			return nil, nil, false
		}
		asked.Add(1)
		resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		t := kmsg.NewOffsetForLeaderEpochResponseTopic()
		t.Topic = topic
		for _, rp := range req.Topics[0].Partitions {
			p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			p.Partition, p.LeaderEpoch, p.EndOffset = rp.Partition, rp.LeaderEpoch, at
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
		return resp, nil, true
	})
	return &asked
}

// TestCutLog: what a topic got after its log had lost its end is delivered, although the offsets were settled before.
func TestCutLog(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("a", ""), message("b", ""), message("c", ""))
	s := subscribe(t, d, "x")
	a, b, x := receive(t, s), receive(t, s), receive(t, s)
	settle(t, s, a, driver.Ack, 0)
	settle(t, s, x, driver.Ack, 0) // beyond what is committed
	if err := d.CommitDirty(t.Context(), "orders", driver.DefaultGroup); err != nil {
		t.Fatal(err)
	}
	if epoch := d.CommittedEpoch(t.Context(), "orders", driver.DefaultGroup); epoch < 0 {
		t.Error("no leader epoch is committed")
	}
	// it is in the retry log, and its offset will belong to another message
	settle(t, s, b, driver.Retry, time.Millisecond)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := cutLogs(c, d.Namespace()+"orders", 1)
	s = subscribe(t, again(t, d, c.ListenAddrs()), "y")
	seen := map[string]int{}
	for range 3 {
		x := receive(t, s)
		seen[x.ID]++
		settle(t, s, x, driver.Ack, 0)
	}
	if asked.Load() == 0 || seen["b"] != 2 || seen["c"] != 1 { // those at offsets 1 and 2 stand for the new ones
		t.Errorf("received %v after the log was cut at 1", seen)
	}
}

// TestCutTier: what was delayed after the log of a tier had lost its end fires, although the offsets had left before.
func TestCutTier(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	s := subscribe(t, d, "x")
	m := message("a", "")
	m.Delay = 10 * time.Millisecond
	publish(t, d, m)
	settle(t, s, receive(t, s), driver.Ack, 0)
	d.CommitTiers(t.Context())
	end(t, d)
	asked := cutLogs(c, d.Namespace()+"_ferry.delay", 0)
	other := again(t, d, c.ListenAddrs())
	// it stands for another one at its offset
	if x := receive(t, subscribe(t, other, "y")); x.ID != "a" || asked.Load() == 0 {
		t.Errorf("received %s", x.ID)
	}
}

// TestOverlaidRecord: an owner that stays notices a record of a later leader at an offset that it has read, and goes
// back there.
func TestOverlaidRecord(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("a", ""), message("b", ""))
	s := subscribe(t, d, "x")
	settle(t, s, receive(t, s), driver.Ack, 0)
	held := receive(t, s)
	cutLogs(c, d.Namespace()+"orders", 0)
	d.Overlay(t.Context(), "orders", driver.DefaultGroup, 0)
	if err := s.Settle(t.Context(), []driver.Settlement{{Delivery: held}})[0]; err == nil {
		t.Error("a message that the log has lost was settled")
	}
	for _, want := range []string{"a", "b"} {
		if x := receive(t, s); x.ID != want {
			t.Errorf("received %s, want %s", x.ID, want)
		}
	}
}

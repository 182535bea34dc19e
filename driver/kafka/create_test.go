package kafka_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// TestStartTogether: processes that publish and consume at once where nothing exists yet all succeed, and everything is
// delivered.
func TestStartTogether(t *testing.T) {
	t.Parallel()
	c := kafkatest.Shared(t)
	for round := range 3 {
		startTogether(t, c, fmt.Sprintf("st%d-%d.", time.Now().UnixNano(), round))
	}
}

func startTogether(t *testing.T, c *kafkatest.Cluster, namespace string) {
	t.Helper()
	const processes = 4
	ds := make([]*kafka.Driver, processes)
	for i := range ds {
		ds[i] = open(t, c, namespace)
	}
	defer func() {
		for _, d := range ds {
			end(t, d)
		}
	}()
	w := &witness{last: map[string]string{}, seen: map[string]int{}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for i, d := range ds {
		all.Go(func() {
			if _, err := d.Publish(ctx, []*driver.Message{message(fmt.Sprint("m", i), fmt.Sprint("k", i))},
				driver.PublishOptions{}); err != nil {
				t.Errorf("process %d cannot publish: %v", i, err)
				cancel()
			}
		})
		all.Go(func() {
			s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "orders", Instance: fmt.Sprint(i), Lease: time.Minute})
			if err != nil {
				if ctx.Err() == nil || w.count() < processes { // otherwise the others had everything before it was there
					t.Errorf("process %d cannot subscribe: %v", i, err)
					cancel()
				}
				return
			}
			for w.count() < processes {
				got, err := s.Receive(ctx, 10)
				if err != nil {
					break
				}
				for _, x := range got {
					w.note(x)
					s.Settle(ctx, []driver.Settlement{{Delivery: x}})
				}
				if w.count() == processes {
					cancel()
				}
			}
		})
	}
	all.Wait()
	if n := w.count(); n != processes {
		t.Errorf("%d of %d messages were delivered", n, processes)
	}
}

// TestOneMakesAGroup: a process that is slow to make a group does not move the group that another made meanwhile past
// what was published since.
func TestOneMakesAGroup(t *testing.T) {
	t.Parallel()
	c := fake(t)
	slow := openFake(t, c)
	quick := again(t, slow, c.ListenAddrs())
	if err := slow.EnsureTopic(t.Context(), "orders", driver.TopicConfig{}); err != nil {
		t.Fatal(err)
	}
	begun, goOn := holdCreation(c, "_ferry.retry")
	var both sync.WaitGroup
	both.Go(func() {
		if err := slow.EnsureGroup(t.Context(), "orders", driver.DefaultGroup,
			driver.GroupOptions{Start: driver.Position{From: driver.FromEnd}}); err != nil {
			t.Errorf("the slow one: %v", err)
		}
	})
	<-begun
	both.Go(func() { // it makes the same group, or waits for it
		publish(t, quick, message("m", "k"))
		goOn()
	})
	both.Go(func() {
		claims(t, c, slow.Namespace()+"_ferry.meta", 2)
		goOn()
	})
	both.Wait()
	if x := receive(t, subscribe(t, quick, "x")); x.ID != "m" {
		t.Errorf("received %s", x.ID)
	}
}

// holdCreation lets the first request wait that creates a topic with a part in its name. The rest of the cluster goes
// on.
func holdCreation(c *kfake.Cluster, part string) (begun chan struct{}, goOn func()) {
	var once sync.Once
	begun, released := make(chan struct{}), make(chan struct{})
	held := false
	c.ControlKey(int16(kmsg.CreateTopics), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.CreateTopicsRequest)
		if !held && len(req.Topics) > 0 && strings.Contains(req.Topics[0].Topic, part) {
			held = true
			close(begun)
			c.SleepControl(func() { <-released })
		}
		return nil, nil, false
	})
	return begun, func() { once.Do(func() { close(released) }) }
}

// claims returns when so many claims on the group were stored, or when the message is there.
func claims(t *testing.T, c *kfake.Cluster, topic string, n int) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Error(err)
		return
	}
	defer cl.Close()
	for n > 0 {
		for _, r := range cl.PollFetches(t.Context()).Records() {
			key := string(r.Key)
			if strings.HasPrefix(key, "~/make/g/") && r.Value != nil || strings.HasPrefix(key, "g/") { // or it is made
				n--
			}
		}
	}
}

// TestCommitRefusedAtTheStart: that somebody consumes a group already, of which there is no row yet, is no reason to
// fail.
func TestCommitRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	var refused atomic.Int32
	c.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if refused.Add(1) > 3 {
			return nil, nil, false
		}
		c.KeepControl()
		return refusedCommit(req.(*kmsg.OffsetCommitRequest), kerr.UnknownMemberID), nil, true
	})
	publish(t, d, message("m", "k"))
	if x := receive(t, subscribe(t, d, "x")); x.ID != "m" || refused.Load() < 3 {
		t.Errorf("received %s after %d refusals", x.ID, refused.Load())
	}
}

// TestLeaderThatLearnsLate: the leader of a new topic hears of it later than the broker that was asked for the
// metadata. Opening waits for it.
func TestLeaderThatLearnsLate(t *testing.T) {
	t.Parallel()
	c := fake(t)
	var asked atomic.Int32
	c.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		if asked.Add(1) > 3 {
			return nil, nil, false
		}
		c.KeepControl()
		req := kreq.(*kmsg.ListOffsetsRequest)
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, topic := range req.Topics {
			rt := kmsg.NewListOffsetsResponseTopic()
			rt.Topic = topic.Topic
			for _, p := range topic.Partitions {
				rp := kmsg.NewListOffsetsResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p.Partition, kerr.UnknownTopicOrPartition.Code
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, true
	})
	publish(t, openFake(t, c), message("a", "k"))
}

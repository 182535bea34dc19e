package registry

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
)

// open follows the meta topic of brokers inside the process, as one process does. It counts how often rows changed.
func open(t *testing.T, brokers []string) (*Registry, *atomic.Int64) {
	t.Helper()
	c, err := cluster.New(cluster.Settings{Brokers: brokers, Partitions: 2, InternalPartitions: 1, Replicas: 1,
		MaxBody: 1 << 20, Session: 6 * time.Second}, true)
	if err != nil {
		t.Fatal(err)
	}
	ts, err := compacted.NewTables(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	run, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		c.Shut()
		cancel()
		ts.Reader.Close()
		c.Tasks.Wait()
		c.Client.Close()
	})
	if err := c.CreateTopics(t.Context(), cluster.TopicSpec{Name: c.MetaTopic(), Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	c.Task(func() { ts.ReadTables(run) })
	d, changes := New(c, ts), new(atomic.Int64)
	if err := d.Follow(t.Context(), func() { changes.Add(1) }); err != nil {
		t.Fatal(err)
	}
	return d, changes
}

// TestRegistry: what one process stores about topics and groups, another one knows; topics and groups with the same
// beginning are apart.
func TestRegistry(t *testing.T) {
	t.Parallel()
	brokers, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer brokers.Close()
	here, _ := open(t, brokers.ListenAddrs())
	there, changes := open(t, brokers.ListenAddrs())
	put := func(key string, row any) {
		t.Helper()
		if err := here.Put(t.Context(), key, row); err != nil {
			t.Fatal(err)
		}
		if err := there.Meta.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := there.TopicNames(); len(got) != 0 {
		t.Fatalf("topics %q in an empty registry", got)
	}
	put(TopicKey("orders"), TopicRow{Implicit: true})
	put(TopicKey("orders.late"), TopicRow{Paused: true})
	put(GroupKey("orders", "b"), GroupRow{Order: driver.Strict})
	put(GroupKey("orders", "a"), GroupRow{Paused: true})
	put(GroupKey("orders.late", "c"), GroupRow{})
	if got := there.TopicNames(); len(got) != 2 || got[0] != "orders" || got[1] != "orders.late" {
		t.Errorf("topics %q", got)
	}
	if got := there.GroupsOf("orders"); len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("groups %q of the topic orders", got)
	}
	for _, x := range []struct {
		topic, group string
		paused       bool
	}{{"orders", "a", true}, {"orders", "b", false}, {"orders.late", "c", true}, {"orders", "none", false}} {
		if got := there.Paused(x.topic, x.group); got != x.paused {
			t.Errorf("group %s of %s is paused: %v, want %v", x.group, x.topic, got, x.paused)
		}
	}
	state := &TopicState{Name: "orders", key: TopicKey("orders")}
	if !there.RowOf(state).Implicit {
		t.Error("the row of a topic is not what was stored")
	}
	put(TopicKey("orders"), TopicRow{Config: driver.TopicConfig{MaxMessages: 7}})
	if row := there.RowOf(state); row.Implicit || row.Config.MaxMessages != 7 {
		t.Errorf("a changed row is still %+v", row)
	}
	put(GroupKey("orders", "a"), nil)
	if got := there.GroupsOf("orders"); len(got) != 1 || got[0] != "b" {
		t.Errorf("groups %q after one was deleted", got)
	}
	if changes.Load() == 0 {
		t.Error("nobody was told of changes")
	}
}

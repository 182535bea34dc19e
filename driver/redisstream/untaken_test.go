package redisstream_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// What an owner has read is not taken on before it is booked. In between it may end: it expires, or somebody deletes
// it. It is counted once then, and nobody gets it.

// reads notes that an owner has read what is in the stream, and has not lived to take it on.
func (w *world) reads(group string) {
	w.Helper()
	w.ok(w.c.HSet(w.ctx(), fmt.Sprintf("{%s/jobs/0}:g:%s:group", w.prefix, group), "reading", 1).Err())
	w.ok(w.c.XReadGroup(w.ctx(), &goredis.XReadGroupArgs{Group: group, Consumer: "ghost",
		Streams: []string{w.stream(0), ">"}}).Err())
}

// ended demands that a group has settled everything, so much of it by acknowledgements.
func (w *world) ended(group string, acked, expired, cancelled uint64) {
	w.Helper()
	st, err := w.d.Stats(w.ctx(), "jobs")
	w.ok(err)
	i := slices.IndexFunc(st.Groups, func(g driver.GroupStats) bool { return g.Group == group })
	if g := st.Groups[i]; st.Messages != 0 || g.Acked != acked || g.Expired != expired ||
		g.Cancelled != cancelled || g.Ready != 0 {
		w.Errorf("%+v", st)
	}
}

// ackAll acknowledges what a group gets, and demands that it is this.
func (w *world) ackAll(group string, want ...string) {
	w.Helper()
	s, err := w.d.Subscribe(w.ctx(),
		driver.SubscribeOptions{Topic: "jobs", Group: group, Instance: "host-1", Lease: time.Minute})
	w.ok(err)
	var got []string
	for _, d := range w.take(s, len(want)) {
		got = append(got, d.ID)
		w.settle(s, driver.Ack, d)
	}
	if !slices.Equal(got, want) {
		w.Errorf("group %s got %v, want %v", group, got, want)
	}
	w.ok(s.Close(w.ctx()))
}

func TestUntakenEntryIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	w.publish(0, 3, "")
	w.reads("default")
	w.ok(w.d.Delete(w.ctx(), []driver.Target{{Topic: "jobs", ID: "m0001"}})[0])
	w.sound()
	w.ackAll("default", "m0000", "m0002")
	w.ended("default", 2, 0, 1)
	w.sound()
}

func TestUntakenEntryExpires(t *testing.T) {
	for _, dead := range []bool{false, true} {
		t.Run(fmt.Sprintf("dead letter %v", dead), func(t *testing.T) {
			w := newWorld(t)
			w.ok(w.d.EnsureTopic(w.ctx(), "jobs", driver.TopicConfig{Partitions: 1, ExpiredDead: dead}))
			_, err := w.d.Publish(w.ctx(),
				[]*driver.Message{{Topic: "jobs", ID: "late", TTL: 50 * time.Millisecond}, {Topic: "jobs", ID: "stays"}},
				driver.PublishOptions{})
			w.ok(err)
			w.reads("default")
			w.until("it expires", func() bool {
				st, err := w.d.Stats(w.ctx(), "jobs")
				w.ok(err)
				return st.Groups[0].Expired+uint64(st.Groups[0].Dead) == 1
			})
			w.sound()
			w.ackAll("default", "stays")
			if !dead {
				w.ended("default", 1, 1, 0)
			}
			w.sound()
		})
	}
}

// TestUntakenEntryOfTwoGroups: one group is to skip an entry that its owner has read, and another is the last that
// needed it.
func TestUntakenEntryOfTwoGroups(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	for _, group := range []string{"default", "second"} {
		w.ok(w.d.EnsureGroup(w.ctx(), "jobs", group, driver.GroupOptions{}))
	}
	w.publish(0, 3, "")
	w.reads("default")
	w.ok(w.d.Delete(w.ctx(), []driver.Target{{Topic: "jobs", Group: "default", ID: "m0001"}})[0])
	w.ackAll("second", "m0000", "m0001", "m0002")
	w.sound()
	w.ackAll("default", "m0000", "m0002")
	w.ended("default", 2, 0, 1)
	w.sound()
}

// reader waits behind the first read of an owner, before what was read is booked.
type reader struct {
	quiet
	once       sync.Once
	read, book chan struct{}
}

func (r *reader) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		err := next(ctx, cmds)
		if slices.ContainsFunc(cmds, func(c goredis.Cmder) bool { return strings.EqualFold(c.Name(), "xreadgroup") }) {
			r.once.Do(func() {
				close(r.read)
				<-r.book
			})
		}
		return err
	}
}

func TestUntakenEntryIsDeletedBeforeItIsBooked(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	w.publish(0, 200, "")
	r := &reader{read: make(chan struct{}), book: make(chan struct{})}
	d := w.beside(r)
	s, err := d.Subscribe(w.ctx(), driver.SubscribeOptions{Topic: "jobs", Instance: "slow", Lease: time.Minute})
	w.ok(err)
	got := make(chan []*driver.Delivery)
	go func() {
		defer close(got)
		for n := 0; n < 199; {
			ds, err := s.Receive(w.ctx(), 200)
			if err != nil {
				t.Error(err)
				return
			}
			n += len(ds)
			got <- ds
		}
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-r.read
		if err := w.d.Delete(w.ctx(), []driver.Target{{Topic: "jobs", ID: "m0199"}})[0]; err != nil {
			t.Error(err)
		}
		close(r.book)
	}()
	for ds := range got {
		for _, d := range ds {
			if d.ID == "m0199" {
				t.Error("what was deleted is delivered")
			}
		}
		w.settle(s, driver.Ack, ds...)
	}
	<-ended
	w.ok(s.Close(w.ctx()))
	w.ok(d.Close(w.ctx()))
	w.ended("default", 199, 0, 1)
	w.sound()
}

package kinds_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/operation"
	"github.com/ferrymq/ferry/operation/kinds"
)

// On every broker, each kind does what its dry run counts, to exactly what was meant.
func TestOnEveryBroker(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{AOF: "everysec"})
	prefix := "?prefix=o" + rand.Text()
	for name, url := range map[string]string{
		"memory":      "memory://",
		"disk":        "disk://" + t.TempDir(),
		"redis":       server.URL() + prefix,
		"redisstream": strings.Replace(server.URL(), "redis", "redisstream", 1) + prefix + "&partitions=2",
		"kafka": "kafka://" + kafkatest.Single(t).Addrs()[0] + "/?namespace=o" + strings.ToLower(rand.Text()) +
			".&partitions=2&internal_partitions=1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := open.URL(context.Background(), url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Close(context.Background()) })
			r := newRig(t, b)
			letters(r)
			messages(r)
			reset(r)
			r.audit()
		})
	}
}

// letters: 40 die, some are replayed, some removed, the oldest expire, and nothing is left.
func letters(r *rig) {
	r.publish("m", 40, 0)
	r.bury(40)
	some := kinds.Letters{Topic: topic, Where: `id < "m0020"`}
	r.do(kinds.Replay{Letters: some, Headers: map[string]string{"by": "ann"}}.Request(), operation.Done, 20)
	r.expect(driver.StateReady, numbered("m", 0, 20)...)
	r.do(kinds.Remove{Letters: kinds.Letters{Topic: topic, Where: `id < "m0030"`}}.Request(), operation.Done, 10)
	r.do(kinds.Export{Letters: kinds.Letters{Topic: topic}, File: "saved.ndjson"}.Request(), operation.Done, 10)
	r.do(kinds.Expire{Letters: kinds.Letters{Topic: topic}, MaxCount: 4}.Request(), operation.Done, 6)
	if left := r.ids(driver.StateDead); len(left) != 4 {
		r.Errorf("%d are left", len(left))
	}
	r.do(kinds.Remove{Letters: kinds.Letters{Topic: topic}}.Request(), operation.Done, 4)
	r.settle(20, driver.Settlement{Outcome: driver.Ack})
	op := r.do(kinds.Replay{Letters: kinds.Letters{Topic: "nowhere"}}.Request(), operation.Failed, 0)
	if !strings.Contains(op.Problem, "nowhere") {
		r.Errorf("%+v", op)
	}
}

// messages: some that are delayed are made due, some put off, the others cancelled, where that is fast more than a page
// of them; what is ready is purged by a condition.
func messages(r *rig) {
	n := 260
	if r.d.Capabilities().Driver == "kafka" {
		n = 30
	}
	r.publish("d", n, 3*time.Hour)
	r.do(kinds.Reschedule{Messages: kinds.Messages{Topic: topic, Where: `id < "d0010"`}}.Request(), operation.Done, 10)
	at := time.Now().Add(10 * time.Hour)
	r.do(kinds.Reschedule{Messages: kinds.Messages{Topic: topic, Where: `id < "d0020"`}, At: at}.Request(),
		operation.Done, 10)
	p, err := r.d.Browse(context.Background(), driver.Query{Topic: topic, State: driver.StateDelayed, Limit: 1000})
	r.ok(err)
	moved := 0
	for _, e := range p.Entries {
		if e.DueAt.Sub(at).Abs() < time.Minute {
			moved++
		}
	}
	if moved != 10 || len(p.Entries) != n-10 {
		r.Errorf("%d are due then, of %d", moved, len(p.Entries))
	}
	// done already
	r.do(kinds.Reschedule{Messages: kinds.Messages{Topic: topic, Where: `id < "d0020"`}, At: at}.Request(),
		operation.Done, 0)
	r.do(kinds.Purge{Messages: kinds.Messages{Topic: topic,
		States: []ferry.State{driver.StateDelayed, driver.StateWaiting}, Where: `id != "d0029"`}}.Request(),
		operation.Done, int64(n-11))
	r.settle(10, driver.Settlement{Outcome: driver.Ack}) // those that were made due
	r.publish("p", 8, 0)
	r.do(kinds.Purge{Messages: kinds.Messages{Topic: topic, Group: driver.DefaultGroup, Where: `id >= "p0003"`}}.Request(),
		operation.Done, 5)
	r.expect(driver.StateReady, numbered("p", 0, 3)...)
	r.do(kinds.Purge{Messages: kinds.Messages{Topic: topic}}.Request(), operation.Done, 4)
	r.expect(driver.StateReady)
	r.do(kinds.Purge{Messages: kinds.Messages{Topic: topic, Group: "nobody"}}.Request(), operation.Failed, 0)
}

// reset: a topic that keeps what is settled delivers it again, where a broker can.
func reset(r *rig) {
	ctx := context.Background()
	back := kinds.Reset{Topic: "kept", Group: driver.DefaultGroup, To: "begin"}
	if err := r.d.EnsureTopic(ctx, "kept", driver.TopicConfig{Keep: time.Hour}); errors.Is(err, driver.ErrUnsupported) {
		r.do(kinds.Reset{Topic: topic, Group: driver.DefaultGroup, To: "begin"}.Request(), operation.Failed, 0)
		return
	}
	for i := range 5 {
		_, err := r.d.Publish(ctx, []*driver.Message{{ID: numbered("k", i, i+1)[0], OwnID: true, Topic: "kept"}},
			driver.PublishOptions{})
		r.ok(err)
	}
	sub, err := r.d.Subscribe(ctx, driver.SubscribeOptions{Topic: "kept", Instance: "rig"})
	r.ok(err)
	for n := 0; n < 5; {
		ds, err := sub.Receive(ctx, 5)
		r.ok(err)
		for _, d := range ds {
			r.ok(sub.Settle(ctx, []driver.Settlement{{Delivery: d, Outcome: driver.Ack}})[0])
		}
		n += len(ds)
	}
	r.ok(sub.Close(ctx))
	r.do(back.Request(), operation.Done, 5)
	st, err := r.d.Stats(ctx, "kept")
	r.ok(err)
	if st.Groups[0].Ready != 5 {
		r.Errorf("%+v", st)
	}
}

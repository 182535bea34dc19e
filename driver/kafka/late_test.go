package kafka_test

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// shortClaim is long enough for a change on a slow machine.
const shortClaim = 6 * time.Second

// three are drivers whose claims on rows last for a moment only: an owner, one behind a wire, and another.
func three(t *testing.T, w *wire) (owner, wired, other *kafka.Driver) {
	t.Helper()
	o := kafka.Options{Brokers: kafkatest.Shared(t).Addrs(), Namespace: "l" + rand.Text()[:6] + ".", Partitions: 1,
		InternalPartitions: 1}
	o = kafka.WithClaims(o, shortClaim)
	var ds []*kafka.Driver
	for i := range 3 {
		if o.Dial = nil; i == 1 {
			o.Dial = w.dial
		}
		d, err := kafka.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { end(t, d) })
		ds = append(ds, d)
	}
	return ds[0], ds[1], ds[2]
}

// insist moves a dead letter as soon as nobody else may.
func insist(t *testing.T, d *kafka.Driver, m driver.Move) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		err := d.Move(t.Context(), []driver.Move{m})[0]
		if err == nil {
			return
		}
		if !errors.Is(err, driver.ErrConflict) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestStoppedBeforeTheReplay: what a process stores that was stopped for longer than its claim on a dead letter has no
// effect. Another has replayed it.
func TestStoppedBeforeTheReplay(t *testing.T) {
	t.Parallel()
	w := &wire{}
	owner, stopped, quick := three(t, w)
	s := subscribe(t, owner, "x")
	for _, id := range []string{"m", "z"} {
		publish(t, owner, message(id, ""))
		settle(t, s, receive(t, s), driver.Dead, 0)
	}
	if err := owner.CommitDirty(t.Context(), "orders", driver.DefaultGroup); err != nil {
		t.Fatal(err)
	}
	m := driver.Move{Target: target("m")}
	begun, goOn := w.holdPart("r/m/1")
	answer := make(chan error, 1)
	go func() { answer <- stopped.Move(t.Context(), []driver.Move{m})[0] }()
	<-begun
	insist(t, quick, m)
	x := receive(t, s)
	settle(t, s, x, driver.Ack, 0)
	goOn()
	if err := <-answer; err == nil {
		t.Error("who was stopped hears that it replayed the letter")
	}
	if err := owner.Move(t.Context(), []driver.Move{{Target: target("z")}})[0]; err != nil { // behind it in the retry log
		t.Fatal(err)
	}
	if y := receive(t, s); x.ID != "m" || y.ID != "z" {
		t.Errorf("received %s and %s, want m once, and z", x.ID, y.ID)
	}
}

// TestStoppedBeforeTheEnd: the end of a dead letter that comes after its claim does not end another letter that has the
// same key since, also not when the topic is compacted.
func TestStoppedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	w := &wire{}
	owner, stopped, quick := three(t, w)
	s := subscribe(t, owner, "x")
	publish(t, owner, message("m", ""))
	settle(t, s, receive(t, s), driver.Dead, 0)
	if err := owner.CommitDirty(t.Context(), "orders", driver.DefaultGroup); err != nil {
		t.Fatal(err)
	}
	m := driver.Move{Target: target("m")}
	begun, goOn := w.holdPart("r/m/1")
	answer := make(chan error, 1)
	go func() { answer <- stopped.Move(t.Context(), []driver.Move{m})[0] }()
	<-begun
	insist(t, quick, m)
	settle(t, s, receive(t, s), driver.Ack, 0)
	again := message("m", "")
	again.Body = []byte("another")
	publish(t, quick, again)
	settle(t, s, receive(t, s), driver.Dead, 0)
	if err := owner.CommitDirty(t.Context(), "orders", driver.DefaultGroup); err != nil {
		t.Fatal(err)
	}
	goOn()
	if err := <-answer; err == nil {
		t.Error("who was stopped hears that it replayed the letter")
	}
	es, err := quick.Get(t.Context(), target("m"))
	if err != nil || len(es) != 1 || string(es[0].Body) != "another" {
		t.Errorf("the letter that came since: %v, %v", es, err)
	}
	if r := newest(t, owner.Namespace()+"_ferry.dead.orders", driver.DefaultGroup+"/m"); r == nil || r.Value == nil {
		t.Error("compaction would remove the letter")
	}
}

// newest is the record of a key that compaction keeps.
func newest(t *testing.T, topic, key string) (found *kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(kafkatest.Shared(t).Addrs()...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for {
		fetches := cl.PollFetches(t.Context())
		for _, r := range fetches.Records() {
			if string(r.Key) == key {
				found = r
			}
		}
		last, done := int64(-1), false
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, r := range p.Records {
				last = r.Offset
			}
			done = last+1 >= p.HighWatermark
		})
		if done {
			return found
		}
	}
}

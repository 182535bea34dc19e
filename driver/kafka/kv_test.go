package kafka_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// write makes one write in a bucket.
func write(t testing.TB, d driver.Driver, w driver.Write) driver.WriteResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return d.KV().Apply(ctx, "things", driver.KVOptions{}, w)[0]
}

// put makes one that must be applied.
func put(t testing.TB, d driver.Driver, w driver.Write) driver.Value {
	t.Helper()
	r := write(t, d, w)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return r.Value
}

// get reads a value.
func get(t testing.TB, d driver.Driver, name string) driver.Value {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	vs, err := d.KV().Get(ctx, "things", name)
	if err != nil {
		t.Fatal(err)
	}
	return vs[0]
}

// listing is all values, but for what is left of them.
func listing(t testing.TB, d driver.Driver) []driver.Value {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	page, err := d.KV().List(ctx, driver.KVQuery{Bucket: "things", Limit: driver.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	for i := range page.Values {
		page.Values[i].Left = 0
	}
	return page.Values
}

// sameValues demands that two readers agree.
func sameValues(t testing.TB, who string, got, want []driver.Value) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			t.Fatalf("%s has %d values, want %d", who, len(got), len(want))
		}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%s has %+v, want %+v", who, got[i], want[i])
		}
	}
}

// logStart is where the log of the values begins.
func logStart(t testing.TB, brokers []string, namespace string) int64 {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	starts, err := kadm.NewClient(cl).ListStartOffsets(t.Context(), namespace+"_ferry.kv")
	if err != nil {
		t.Fatal(err)
	}
	at, _ := starts.Lookup(namespace+"_ferry.kv", 0)
	return at.Offset
}

// TestValuesAfterATrim: when snapshots have let the begin of the log go, a fresh reader and one that was cut off
// meanwhile have what those have who read all of it, and go on together.
func TestValuesAfterATrim(t *testing.T) {
	t.Parallel()
	c, namespace := kafkatest.Shared(t), "v"+rand.Text()[:10]+"."
	opened := func(w *wire) *kafka.Driver {
		d, err := kafka.New(t.Context(), kafka.WithSnapshots(kafka.Options{Brokers: c.Addrs(), Namespace: namespace,
			InternalPartitions: 1, Dial: w.dial}, 8<<10))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { end(t, d) })
		return d
	}
	away := &wire{}
	whole, behind := opened(&wire{}), opened(away)
	lease := put(t, whole, driver.Write{Name: "lease", TTL: time.Hour, Request: "r"})
	if v := get(t, behind, "lease"); v.Revision != lease.Revision {
		t.Fatalf("%+v, want %+v", v, lease)
	}
	away.cut()
	for i := 0; logStart(t, c.Addrs(), namespace) == 0; i++ {
		if i == 10_000 {
			t.Fatal("nobody trims the log")
		}
		put(t, whole, driver.Write{Name: fmt.Sprint("n", i%40), Data: []byte(strings.Repeat("x", i%300))})
	}
	put(t, whole, driver.Write{Name: "n3", Delete: true})
	away.mend()
	fresh := opened(&wire{})
	for name, d := range map[string]*kafka.Driver{"fresh": fresh, "behind": behind} {
		sameValues(t, "who is "+name, listing(t, d), listing(t, whole))
	}
	again := put(t, fresh, driver.Write{Name: "lease", TTL: time.Hour, Request: "r"})
	if again.Revision != lease.Revision {
		t.Errorf("the request of before is answered with %+v, first %+v", again, lease)
	}
	if r := write(t, fresh, driver.Write{Name: "lease", If: driver.Absent}); !errors.Is(r.Err, driver.ErrConflict) ||
		r.Epoch != lease.Epoch {
		t.Errorf("the lease of before: %+v", r)
	}
	if v := put(t, behind, driver.Write{Name: "last", If: driver.Absent}); get(t, fresh, "last").Revision != v.Revision ||
		get(t, whole, "last").Revision != v.Revision {
		t.Errorf("what is written now is not seen by all: %+v", v)
	}
}

// TestValuesAfterALeaderChange: with another leader revisions go on above all before, a TTL counts anew, and whoever
// reads the log later agrees.
func TestValuesAfterALeaderChange(t *testing.T) {
	t.Parallel()
	c := kafkatest.Single(t)
	d := open(t, c, "")
	defer end(t, d)
	const ttl = time.Hour
	before := put(t, d, driver.Write{Name: "lease", TTL: ttl, If: driver.Absent})
	written := time.Now()
	if err := c.Brokers[0].Restart(); err != nil {
		t.Fatal(err)
	}
	down := time.Since(written)
	asked := time.Now()
	var after driver.WriteResult
	for { // until the broker leads again
		if after = write(t, d, driver.Write{Name: "other"}); after.Err == nil {
			break
		}
		if !errors.Is(after.Err, driver.ErrUnknown) && !errors.Is(after.Err, driver.ErrNotApplied) {
			t.Fatal(after.Err)
		}
	}
	if after.Revision>>40 <= before.Revision>>40 {
		t.Errorf("revision %x after %x: the epoch of the leader is the same", after.Revision, before.Revision)
	}
	if v := get(t, d, "lease"); v.Epoch != before.Epoch || ttl-v.Left > time.Since(asked)+time.Millisecond {
		t.Errorf("%v are left of %v after %v, of which the broker was away for %v", v.Left, ttl, time.Since(written), down)
	}
	if r := write(t, d, driver.Write{Name: "lease", If: driver.Absent}); !errors.Is(r.Err, driver.ErrConflict) {
		t.Errorf("taken while it lives: %+v", r)
	}
	fresh := open(t, c, "")
	defer end(t, fresh)
	sameValues(t, "a fresh reader", listing(t, fresh), listing(t, d))
}

// TestDamagedValueRecord: what somebody else writes into the topic is passed over by everybody, and the diagnosis
// tells.
func TestDamagedValueRecord(t *testing.T) {
	t.Parallel()
	c, namespace := fake(t), "v"+rand.Text()[:6]+"."
	d, _ := mortal(t, c, namespace)
	first := put(t, d, driver.Write{Name: "a"})
	for _, raw := range [][]byte{nil, {}, []byte("hello"), make([]byte, 2000)} {
		if err := d.StoreRawCommand(t.Context(), raw); err != nil {
			t.Fatal(err)
		}
	}
	if v := put(t, d, driver.Write{Name: "b"}); v.Revision != first.Revision+5 {
		t.Errorf("%+v after %+v", v, first)
	}
	other, _ := mortal(t, c, namespace)
	sameValues(t, "another reader", listing(t, other), listing(t, d))
	fs, err := other.Diagnose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(fs, func(f driver.Finding) bool {
		return f.Subject == namespace+"_ferry.kv" && strings.Contains(f.Text, "4 records")
	}) {
		t.Errorf("the diagnosis says %+v", fs)
	}
}

// TestNewerValueRecord: a record of a newer version stops whoever does not know it, with a hint, and nobody waits for
// ever.
func TestNewerValueRecord(t *testing.T) {
	t.Parallel()
	c, namespace := fake(t), "v"+rand.Text()[:6]+"."
	d, _ := mortal(t, c, namespace)
	put(t, d, driver.Write{Name: "a"})
	newer := []byte{0, 0, 0, 0, 3, 'w', 0}
	binary.LittleEndian.PutUint32(newer, crc32.Checksum(newer[4:], crc32.MakeTable(crc32.Castagnoli)))
	if err := d.StoreRawCommand(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	_, err := d.KV().Get(t.Context(), "things", "a")
	hinted(t, err, driver.ErrUnsupported)
	if r := write(t, d, driver.Write{Name: "a"}); !errors.Is(r.Err, driver.ErrUnsupported) &&
		!errors.Is(r.Err, driver.ErrUnknown) {
		t.Errorf("a write behind it: %+v", r)
	}
	other, _ := mortal(t, c, namespace)
	_, err = other.KV().List(t.Context(), driver.KVQuery{Bucket: "things"})
	hinted(t, err, driver.ErrUnsupported)
}

// TestUnusedValuesAreNotFollowed: a partition that nobody uses is left, and read again when somebody does.
func TestUnusedValuesAreNotFollowed(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d, err := kafka.New(t.Context(), kafka.WithIdle(kafka.Options{Brokers: c.ListenAddrs(), InternalPartitions: 1},
		50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, d)
	v := put(t, d, driver.Write{Name: "a", Data: []byte("x")})
	for deadline := time.Now().Add(time.Minute); d.Followed() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is followed still")
		}
	}
	if again := get(t, d, "a"); again.Revision != v.Revision || string(again.Data) != "x" {
		t.Errorf("%+v, want %+v", again, v)
	}
}

// TestValueDefects: what the suite demands of named values it notices on Kafka, too.
func TestValueDefects(t *testing.T) {
	t.Parallel()
	c := kafkatest.Shared(t)
	h := harness(driver.AtomicNever, func(t testing.TB, namespace string) *kafka.Driver { return open(t, c, namespace) })
	h.Only = regexp.MustCompile("^kv/")
	drivertest.RunDefects(t, h)
}

// BenchmarkCompareAndSwap measures one writer that replaces what it wrote before.
func BenchmarkCompareAndSwap(b *testing.B) {
	d := open(b, kafkatest.Shared(b), "b"+rand.Text()[:10]+".")
	defer func() { _ = d.Close(context.Background()) }()
	last := put(b, d, driver.Write{Name: "a"})
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		last = put(b, d, driver.Write{Name: "a", If: driver.Condition(last.Revision)})
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1e3, "p99-ms")
}

package kafkakv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// record is one with the newest time that a replica knows.
func record(p *replica, value []byte) *kgo.Record {
	return &kgo.Record{Offset: p.next, LeaderEpoch: max(p.epoch, 0), Timestamp: p.now, Value: value}
}

// feed lets a replica judge a write.
func feed(t testing.TB, p *replica, w *driver.Write) (r driver.WriteResult) {
	t.Helper()
	was := p.observed
	p.observed = func(o outcome) { r = o.result }
	defer func() { p.observed = was }()
	if err := p.take(record(p, encodeWrite("id", "b", w))); err != nil {
		t.Fatal(err)
	}
	return r
}

// show lets a replica see what time it is at a leader.
func show(t testing.TB, p *replica, epoch int32, at time.Time) {
	t.Helper()
	if err := p.take(&kgo.Record{Offset: p.next, LeaderEpoch: epoch, Timestamp: at, Value: encodeTick("t")}); err != nil {
		t.Fatal(err)
	}
}

// TestLeaderChangeEndsNothingEarly: a lease ends by the clock of one leader alone; another one's, however wrong, only
// lets it last longer, and one that somebody was told is lost stays lost.
func TestLeaderChangeEndsNothingEarly(t *testing.T) {
	at := time.UnixMilli(1_000_000)
	p := newReplica(0, func(outcome) {})
	show(t, p, 3, at)
	lease := feed(t, p, &driver.Write{Name: "lease", TTL: 5 * time.Second, If: driver.Absent})
	lost := feed(t, p, &driver.Write{Name: "lost", TTL: time.Second})
	if lease.Err != nil || lease.Revision != 3<<epochBits+2 {
		t.Fatalf("%+v", lease)
	}
	show(t, p, 3, at.Add(2*time.Second))
	if r := feed(t, p, &driver.Write{Name: "x", Fence: &driver.Fence{Name: "lost", Epoch: lost.Epoch}}); !errors.Is(r.Err,
		driver.ErrLeaseLost) {
		t.Errorf("under a lease that has ended: %+v", r)
	}
	taker := &driver.Write{Name: "lease", TTL: 5 * time.Second, If: driver.Absent}
	for i, skew := range []time.Duration{time.Hour, -time.Hour} { // the clocks of the next leaders
		other := at.Add(skew)
		show(t, p, int32(4+i), other)
		if r := feed(t, p, &driver.Write{Name: "x", Fence: &driver.Fence{Name: "lost", Epoch: lost.Epoch}}); !errors.Is(r.Err,
			driver.ErrLeaseLost) {
			t.Errorf("what was lost lives again: %+v", r)
		}
		show(t, p, int32(4+i), other.Add(5*time.Second-time.Millisecond))
		if r := feed(t, p, taker); !errors.Is(r.Err, driver.ErrConflict) {
			t.Fatalf("taken within the TTL of leader %d: %+v", 4+i, r)
		}
	}
	show(t, p, 5, at.Add(-time.Hour+5*time.Second))
	if r := feed(t, p, taker); r.Err != nil || r.Epoch == lease.Epoch {
		t.Errorf("after its TTL: %+v", r)
	}
}

// history is a random log: writes of all kinds, damaged records, snapshots that are whole and such that are not, and
// changes of leader with clocks that differ.
type history struct {
	rnd     *rand.Rand
	whole   *replica
	records []*kgo.Record
	images  []*image // of the whole before each record
	epoch   int32
	clock   time.Time
}

func (h *history) add(value []byte) {
	if h.rnd.IntN(20) == 0 {
		h.epoch++
		h.clock = h.clock.Add(time.Duration(h.rnd.IntN(20_000)-10_000) * time.Millisecond)
	}
	h.clock = h.clock.Add(time.Duration(h.rnd.IntN(400)) * time.Millisecond)
	r := &kgo.Record{Offset: int64(len(h.records)), LeaderEpoch: h.epoch, Timestamp: h.clock, Value: value}
	h.images = append(h.images, h.whole.image())
	h.records = append(h.records, r)
	_ = h.whole.take(r) // none is of a newer version
}

func (h *history) write() []byte {
	w := driver.Write{Name: fmt.Sprint("n", h.rnd.IntN(6)), Data: []byte{byte(h.rnd.IntN(256))}, Quiet: h.rnd.IntN(4) == 0}
	bucket := fmt.Sprint("b", h.rnd.IntN(2))
	there := h.whole.bucket(bucket).Get(w.Name, h.whole.now)
	switch h.rnd.IntN(5) {
	case 0:
		w.If = driver.Absent
	case 1:
		w.If = driver.Condition(there.Revision + uint64(h.rnd.IntN(2)))
	case 2:
		w.Delete, w.Data = true, nil
	}
	if !w.Delete && h.rnd.IntN(2) == 0 {
		w.TTL = time.Duration(1_000+h.rnd.IntN(5_000)) * time.Millisecond
	}
	if h.rnd.IntN(4) == 0 {
		w.Request = fmt.Sprint("r", h.rnd.IntN(5))
	}
	if h.rnd.IntN(4) == 0 {
		lease := h.whole.bucket(bucket).Get("n0", h.whole.now)
		w.Fence = &driver.Fence{Name: "n0", Epoch: max(1, lease.Epoch)}
	}
	return encodeWrite("id", bucket, &w)
}

// snapshot puts one into the log, as of some time ago, among other records; perhaps not whole.
func (h *history) snapshot() {
	asOf := h.rnd.IntN(len(h.images))
	cs := h.images[asOf].chunks()
	if n := h.rnd.IntN(8); n == 0 {
		cs = cs[:len(cs)-1]
	} else if n == 1 {
		cs[len(cs)-1].sum++
	}
	rs, _ := chunkRecords(fmt.Sprint("s", len(h.records)), "", 0, cs)
	for _, r := range rs {
		for range h.rnd.IntN(3) {
			h.add(h.write())
		}
		h.add(r.Value)
	}
}

// TestFreshReadersAgree: whoever begins in the middle of a log, with a snapshot, has the state of those who read all of
// it, at every offset from where it knows one; and the same verdicts.
func TestFreshReadersAgree(t *testing.T) {
	for seed := range uint64(20) {
		verdicts := map[int64]outcome{}
		h := &history{rnd: rand.New(rand.NewPCG(seed, 1)), clock: time.UnixMilli(1_000_000)}
		h.whole = newReplica(0, func(o outcome) {
			if !o.snapshot {
				verdicts[o.offset] = o
			}
		})
		for len(h.records) < 300 {
			switch h.rnd.IntN(30) {
			case 0:
				h.add([]byte("not ours"))
			case 1, 2:
				if len(h.images) > 0 {
					h.snapshot()
				}
			default:
				h.add(h.write())
			}
		}
		known := 0
		for start := int64(1); start < 300; start += 1 + h.rnd.Int64N(20) {
			p := newReplica(start, func(o outcome) {
				if was := verdicts[o.offset]; !o.snapshot && !sameVerdict(o, was) {
					t.Errorf("seed %d from %d: the verdict at %d is %+v, was %+v", seed, start, o.offset, o.result, was.result)
				}
			})
			for _, r := range h.records[start:] {
				if p.known && p.next < int64(len(h.images)) {
					known++
					if got, want := p.image(), h.images[p.next]; !reflect.DeepEqual(got, want) {
						t.Fatalf("seed %d from %d: the state at %d is\n%+v, want\n%+v", seed, start, p.next, got, want)
					}
				}
				if err := p.take(r); err != nil {
					t.Fatal(err)
				}
			}
		}
		if known == 0 {
			t.Errorf("seed %d: no reader found a snapshot", seed)
		}
	}
}

func sameVerdict(a, b outcome) bool {
	alike := true
	for _, kind := range []error{driver.ErrConflict, driver.ErrLeaseLost, driver.ErrFull} {
		alike = alike && errors.Is(a.result.Err, kind) == errors.Is(b.result.Err, kind)
	}
	return a.id == b.id && a.name == b.name && a.wakes == b.wakes && a.result.Revision == b.result.Revision &&
		a.result.Epoch == b.result.Epoch &&
		slices.Equal(a.result.Data, b.result.Data) && alike
}

// TestSnapshotOfManyChunks: one that needs several chunks is loaded whole.
func TestSnapshotOfManyChunks(t *testing.T) {
	p := newReplica(0, func(outcome) {})
	for i := range 50 {
		feed(t, p, &driver.Write{Name: fmt.Sprint("n", i), Data: make([]byte, driver.MaxValue)})
	}
	want, asOf := p.image(), p.next
	cs := want.chunks()
	if len(cs) < 5 {
		t.Fatalf("%d chunks", len(cs))
	}
	q := newReplica(asOf, func(outcome) {})
	rs, _ := chunkRecords("s", "", 0, cs)
	for i, r := range rs {
		r.Offset = asOf + int64(i)
		if q.known {
			t.Fatalf("known after %d of %d chunks", i, len(rs))
		}
		if err := q.take(r); err != nil {
			t.Fatal(err)
		}
	}
	got := q.image()
	got.asOf, got.epoch, got.now = want.asOf, want.epoch, want.now
	if !q.known || !reflect.DeepEqual(got, want) {
		t.Error("what was loaded is not what was written")
	}
}

// TestNewerVersionStopsReading: what this version does not know is not passed over.
func TestNewerVersionStopsReading(t *testing.T) {
	p := newReplica(0, func(outcome) {})
	newer := encodeTick("t")
	newer[4] = versionRemembered + 1
	if err := p.take(record(p, finish(newer))); !errors.Is(err, errNewer) || p.next != 0 {
		t.Errorf("%v, next is %d", err, p.next)
	}
	if err := p.take(record(p, []byte("damaged"))); err != nil || p.next != 1 || p.damaged != 1 || p.problem == nil {
		t.Errorf("%v, next is %d, %d damaged: %v", err, p.next, p.damaged, p.problem)
	}
}

// TestDeletionOfNothing: it is remembered under its request. One of version 1 is judged as those did who wrote it: it
// is forgotten.
func TestDeletionOfNothing(t *testing.T) {
	for v, forgotten := range map[byte]bool{version: true, versionRemembered: false} {
		p := newReplica(0, func(outcome) {})
		show(t, p, 0, time.Unix(1_000, 0))
		deletion := encodeWrite("id", "b", &driver.Write{Name: "n", Delete: true, Request: "r"})
		deletion[4] = v
		take := func() {
			if err := p.take(record(p, finish(deletion))); err != nil {
				t.Fatal(err)
			}
		}
		take()
		feed(t, p, &driver.Write{Name: "n"})
		take()
		if gone := p.bucket("b").Get("n", p.now).Revision == 0; gone != forgotten {
			t.Errorf("version %d: what was written since is gone: %v, want %v", v, gone, forgotten)
		}
	}
}

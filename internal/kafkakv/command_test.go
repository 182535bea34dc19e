package kafkakv

import (
	"encoding/hex"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// everything is a write that uses all fields that can be used together.
var everything = driver.Write{Name: "lease", Data: []byte("me\x00"), If: 1<<40 + 7, TTL: 1500*time.Millisecond + 1,
	Fence: &driver.Fence{Name: "lead", Epoch: 300}, Request: "r1", Quiet: true}

// Records as they are stored. They never change: others read them.
const (
	goldenEverything = "ee474f0001770269647c067468696e6773056c65617365878080808020dd0b046c656164ac020272316d6500"
	goldenAbsent     = "29f5bf710177026964020162016e"
	goldenDelete     = "dd458c390177026964010162016e"
	goldenRemembered = "f1f30e930277026964210162016e0172"
	goldenTick       = "82fabf740174026964"
	goldenChunk      = "1fb70a040173026964ac02010078"
	goldenLast       = "0e16d1be0173026964ac020201808080800878"
)

// TestGoldenRecords: the stored form stays what it is.
func TestGoldenRecords(t *testing.T) {
	for name, x := range map[string]struct {
		record []byte
		want   string
	}{
		"a write with everything": {encodeWrite("id", "things", &everything), goldenEverything},
		"a write if absent":       {encodeWrite("id", "b", &driver.Write{Name: "n", If: driver.Absent}), goldenAbsent},
		"a deletion":              {encodeWrite("id", "b", &driver.Write{Name: "n", Delete: true}), goldenDelete},
		"a deletion on request": {encodeWrite("id", "b", &driver.Write{Name: "n", Delete: true, Request: "r"}),
			goldenRemembered},
		"a tick":  {encodeTick("id"), goldenTick},
		"a chunk": {encodeChunk("id", &chunk{asOf: 300, index: 1, data: []byte("x")}), goldenChunk},
		"a last chunk": {encodeChunk("id",
			&chunk{asOf: 300, index: 2, last: true, sum: 1 << 31, data: []byte("x")}), goldenLast},
	} {
		if got := hex.EncodeToString(x.record); got != x.want {
			t.Errorf("%s is %s, was %s", name, got, x.want)
		}
		if _, err := decode(x.record); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWritesComeBack: a write is read as it was, but for its TTL in whole milliseconds.
func TestWritesComeBack(t *testing.T) {
	for _, w := range []driver.Write{everything, {Name: "n", If: driver.Absent, Data: []byte{}},
		{Name: "n", Delete: true, Data: []byte{}}} {
		c, err := decode(encodeWrite("id", "things", &w))
		if err != nil {
			t.Fatal(err)
		}
		if w.TTL > 0 {
			w.TTL = 1501 * time.Millisecond
		}
		if c.id != "id" || c.bucket != "things" || !reflect.DeepEqual(*c.write, w) {
			t.Errorf("%+v came back as %+v", w, *c.write)
		}
	}
	if got := millis(1<<63 - 1); got != maxMillis {
		t.Errorf("the longest TTL has %d ms", got)
	}
}

// TestDamagedAndNewer: damaged bytes are void wherever they are damaged, and those of a newer version are not taken for
// it.
func TestDamagedAndNewer(t *testing.T) {
	sound := encodeWrite("id", "things", &everything)
	for i := range sound {
		bad := append([]byte(nil), sound...)
		bad[i] ^= 1
		if _, err := decode(bad); !errors.Is(err, errDamaged) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
	for n := range sound {
		if _, err := decode(sound[:n]); !errors.Is(err, errDamaged) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	for i, at := range []int{4, 5} { // version, kind
		newer := append([]byte(nil), sound...)
		newer[at] = 'z'
		if _, err := decode(finish(newer)); !errors.Is(err, errNewer) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// FuzzRecord: no record, and no snapshot, makes a replica panic.
func FuzzRecord(f *testing.F) {
	f.Add([]byte{})
	for _, r := range [][]byte{encodeWrite("id", "things", &everything), encodeTick("id")} {
		f.Add(r[4:])
	}
	p := newReplica(0, func(outcome) {})
	feed(f, p, &driver.Write{Name: "n", TTL: time.Hour, Request: "r"})
	for _, c := range p.image().chunks() {
		f.Add(encodeChunk("s", c)[4:])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sealed := finish(append(make([]byte, 4), data...)) // otherwise the checksum stops nearly all
		for _, start := range []int64{0, 1} {
			p := newReplica(start, func(outcome) {})
			for i := range int64(2) {
				_ = p.take(&kgo.Record{Offset: start + i, Value: sealed, Timestamp: time.UnixMilli(i)}) // of a newer version
			}
			p.image().chunks()
		}
	})
}

package engine

import (
	"bytes"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// FuzzRecords: no bytes make a decoder panic, use memory out of proportion, or accept what it cannot write again.
func FuzzRecords(f *testing.F) {
	e := New(testOptions())
	now := e.now()
	t := newTopic(e, "t")
	t.addGroup("default", driver.Strict, true)
	en := e.newEntry(&driver.Message{ID: "a", Key: "k", Body: []byte("body"), TTL: time.Hour}, now)
	t.store(en, now)
	it := en.items
	it.failures, it.lost, it.cause = 2, 1, driver.CauseRetry
	it.record().history = []driver.Failure{{Error: "x", At: time.Unix(1, 0)}}
	it.edit(&driver.Message{Body: []byte("edited")})
	f.Add(stateOf(en, now))
	it.lost, it.claim = 0, &claim{number: 9, begun: true}
	it.set(leaseLost, true)
	f.Add(stateOf(en, now))
	it.claim = nil
	t.groups[0].bury(it, &driver.Failure{Reason: driver.ReasonFatal}, "i", now)
	f.Add(stateOf(en, now))
	it.more.ending = ending{known: true, took: time.Second, by: "i"}
	f.Add(stateOf(en, now))
	add := func(r storedRecord) { f.Add(written(r, now)) }
	add(&t.topicRecord)
	add(&claimRecord{7, []uint64{en.seq, en.seq}})
	en.flags |= recorded
	add(asFound(en, now))
	behind := mark(12)
	add(&behind)
	t.addCold(7, 7, now.tick, 100, 10, now)
	add(&storedStretch{t.cold.stretches[0], t.cold.ids.seed, t.cold.open})
	t.cold.ids.add(t.cold.ids.hash("b"), 7)
	add(t.storedCold())
	table := t.cold.ids.appendTable([]byte{recordVersion}, int(t.cold.ids.hash("b")>>32%coldTables))
	f.Add((&walk{data: table}).seal())
	add(&known{message: "m", seq: 3, until: 9})
	f.Add(append(appendHead(nil, headOf(en, now)), (&journal{}).appendContent(nil, en)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		// The checksum alone would refuse nearly all.
		sealedAs := func(version byte) []byte { return (&walk{data: append([]byte{version}, data...)}).seal() }
		for _, sealed := range [][]byte{data, sealedAs(recordVersion), sealedAs(lossesVersion), sealedAs(stateVersion)} {
			_ = new(storedState).read(sealed, now)
			for _, r := range []storedRecord{&topicRecord{}, &claimRecord{}, new(mark), &storedStretch{}} {
				_ = readRecord(sealed, r, now)
			}
			_ = readChunk(sealed, now, func(*found, *storedState) {})
			_ = readCold(coldChunks, sealed, &storedCold{tail: &coldTail{}}, now)
			_ = readCold(coldChunks+1, sealed, &storedCold{tail: &coldTail{}}, now)
			var k, again known
			if err := readRecord(sealed, &k, now); err == nil {
				err = readRecord(written(&k, now), &again, now)
				if err != nil || again != k {
					t.Fatalf("%+v came back as %+v, %v", k, again, err)
				}
			}
		}
		if h, env, err := splitMessage(data); err == nil {
			again, rest, err := splitMessage(append(appendHead(nil, h), env...))
			if err != nil || again != h || !bytes.Equal(rest, env) {
				t.Fatalf("%+v came back as %+v, %v", h, again, err)
			}
			_, _ = decodeMessage(bytes.Clone(env), "t")
		}
		_, _, _ = numberOf(data)
		if !bytes.Equal(before, data) {
			t.Fatal("a decoder changed its input")
		}
	})
}

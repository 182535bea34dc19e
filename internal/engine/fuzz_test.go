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
	f.Add(appendState(nil, en, now))
	it.lost, it.claim = 0, &claim{number: 9, begun: true}
	it.set(leaseLost, true)
	f.Add(appendState(nil, en, now))
	it.claim = nil
	t.groups[0].bury(it, &driver.Failure{Reason: driver.ReasonFatal}, "i", now)
	f.Add(appendState(nil, en, now))
	it.more.ending = ending{known: true, took: time.Second, by: "i"}
	f.Add(appendState(nil, en, now))
	f.Add(appendTopic(nil, t, now))
	f.Add(appendReceipt(nil, 7, []*item{it, it}))
	en.flags |= recorded
	f.Add(seal(appendIndexed([]byte{recordVersion}, en, now), 0))
	f.Add(appendMark(nil, 12))
	t.addCold(7, 7, now.tick, 100, 10, now)
	f.Add(appendStretch(nil, &storedStretch{t.cold.stretches.vs[0], t.cold.ids.seed, t.cold.open}, now))
	t.cold.ids.add(t.cold.ids.hash("b"), 7)
	f.Add(seal(t.appendStretches([]byte{recordVersion}, now), 0))
	f.Add(seal(t.cold.ids.appendTable([]byte{recordVersion}, int(t.cold.ids.hash("b")>>32%coldTables)), 0))
	f.Add(appendKnown(nil, known{message: "m", seq: 3, until: 9}))
	f.Add(append(appendHead(nil, headOf(en, now)), (&journal{}).appendContent(nil, en)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		// The checksum alone would refuse nearly all.
		for _, sealed := range [][]byte{data, seal(append([]byte{recordVersion}, data...), 0),
			seal(append([]byte{lossesVersion}, data...), 0), seal(append([]byte{stateVersion}, data...), 0)} {
			_, _ = decodeState(sealed)
			_, _ = decodeTopic(sealed)
			_, _, _ = decodeReceipt(sealed)
			_, _ = decodeMark(sealed)
			_ = decodeChunk(sealed, func(*found, *storedState) {})
			_, _ = decodeStretch(7, sealed, now)
			_ = decodeCold(coldChunks, sealed, &storedCold{}, now)
			_ = decodeCold(coldChunks+1, sealed, &storedCold{}, now)
			if k, err := decodeKnown(sealed); err == nil {
				again, err := decodeKnown(appendKnown(nil, k))
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
			_, _ = e.decodeMessage(bytes.Clone(env), "t")
		}
		_, _, _ = numberOf(data)
		if !bytes.Equal(before, data) {
			t.Fatal("a decoder changed its input")
		}
	})
}

package disk

import (
	"bytes"
	crand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/engine"
)

// TestSpansGoOn: a table never ends where it begins, whatever its first key is, and no table holds messages of a topic
// and something else.
func TestSpansGoOn(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		key := binary.BigEndian.AppendUint32(nil, rng.Uint32N(apartUpTo+3))
		key = append(key, byte('a'+rng.IntN(26)), byte(rng.IntN(256)))[:rng.IntN(7)]
		_, end, err := spanOf(key)
		if err != nil || end != nil && bytes.Compare(end, key) <= 0 {
			t.Fatalf("a table that begins with %x ends at %x, %v", key, end, err)
		}
	}
	for topic := uint32(1); topic <= apartUpTo; topic++ {
		from, to := engine.MessageRange(topic)
		if _, end, _ := spanOf(from); !bytes.Equal(end, to) {
			t.Errorf("messages of topic %d end at %x, not at %x", topic, end, to)
		}
	}
}

// TestTablesAreApart: no table holds messages and something else, so that merging the others does not touch them.
func TestTablesAreApart(t *testing.T) {
	t.Parallel()
	d := open(t, Options{Dir: "/store", fs: vfs.NewMem()})
	body := make([]byte, 8<<10)
	for i := range body {
		body[i] = byte(rand.IntN(256))
	}
	for range 3 {
		ms := make([]*driver.Message, 64)
		for i := range ms {
			ms[i] = &driver.Message{ID: crand.Text(), Topic: "jobs", Body: body}
		}
		if _, err := d.Publish(ctx, ms, driver.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := d.store.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	from, to := engine.MessageRange(1)
	tables, err := d.store.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range tables {
		for _, table := range level {
			first, last := table.Smallest.UserKey, table.Largest.UserKey
			if bytes.Compare(first, from) < 0 != (bytes.Compare(last, from) < 0) ||
				bytes.Compare(first, to) < 0 != (bytes.Compare(last, to) < 0) {
				t.Errorf("a table goes from %x to %x", first, last)
			}
		}
	}
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

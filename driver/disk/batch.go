package disk

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// batch is the changes of one step.
type batch struct {
	b      *pebble.Batch
	latest []pair
	room   []byte // where the pairs are
	swept  []span // ranges that were removed
}

type pair struct{ key, value []byte }

// Set stores head and rest as one value.
func (b *batch) Set(key, head, rest []byte) {
	op := b.b.SetDeferred(len(key), len(head)+len(rest))
	copy(op.Key, key)
	copy(op.Value[copy(op.Value, head):], rest)
	_ = op.Finish() // fails for indexed batches only
}

// SetLatest stores a value, unless a later batch of the same round does.
func (b *batch) SetLatest(key, value []byte) {
	at := len(b.room)
	b.room = append(append(b.room, key...), value...)
	own := b.room[at:]
	b.latest = append(b.latest, pair{own[:len(key):len(key)], own[len(key):]})
}

// Delete removes a key.
func (b *batch) Delete(key []byte) { _ = b.b.Delete(key, nil) } // fails for indexed batches only

// DeleteRange removes a range of keys.
func (b *batch) DeleteRange(from, to []byte) {
	b.swept = append(b.swept, span{bytes.Clone(from), bytes.Clone(to)})
	_ = b.b.DeleteRange(from, to, nil)
}

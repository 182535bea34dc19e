package consumer

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/ferrymq/ferry/driver"
)

// TestPollBuffer: whatever leaves the window in whatever order, bodies stay what they are, and after two calls no
// buffer is kept by less than a quarter of it.
func TestPollBuffer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(r, "items")
		memory, l := bytes.Repeat([]byte{1}, 100*n), &pollBuffer{}
		q := &queue{buffer: l}
		var its []*Item
		for i := range n {
			size := rapid.IntRange(0, 100).Draw(r, "size")
			it := &Item{state: ready, size: size, Msg: &driver.Message{ID: fmt.Sprint(i),
				Body: memory[100*i : 100*i+size : 100*i+size]}}
			if rapid.IntRange(0, 9).Draw(r, "read without a lock") == 0 {
				it.state = inflight
			}
			q.share(it)
			its = append(its, it)
		}
		for _, i := range rapid.Permutation(its).Draw(r, "order") {
			if rapid.Bool().Draw(r, "settled") {
				i.state = gone
			}
			i.unshare()
			called := rapid.Bool().Draw(r, "called twice")
			if called {
				q.copyRests()
				q.copyRests()
			}
			borrowed, busy := 0, 0
			for _, x := range its {
				if x.buffer != nil {
					borrowed += x.size
					if x.state == inflight {
						busy += x.size
					}
				}
			}
			if borrowed != l.left || called && l.left > 0 && 4*l.left <= l.bytes && borrowed != busy {
				r.Fatalf("%d bytes are borrowed, %d of %d noted", borrowed, l.left, l.bytes)
			}
		}
		clear(memory) // whoever still has it sees it
		for _, it := range its {
			if it.state != gone && bytes.Contains(it.Msg.Body, []byte{0}) {
				r.Fatalf("item %s left the window with a body that is not its own", it.Msg.ID)
			}
		}
	})
}

package engine

import (
	"encoding/binary"
	"fmt"
)

// A stretch that is full and without gaps has a record of its own, with what must be known of its messages, so that
// opening the store need not read them. It is removed with the step that brings the first of them into memory: batches
// take effect in their order, so as long as it is there all of its messages are, and are as they were published.

// storedStretch is a stretch and the hashes of the ids of its messages.
type storedStretch struct {
	stretch
	seed   uint64
	hashes []uint64
}

// closeStretch has the newest stretch recorded, before another one begins.
func (t *topic) closeStretch(now moment) {
	c := &t.cold
	n := len(c.stretches)
	if n == 0 {
		return
	}
	s := &c.stretches[n-1]
	if s.recorded || s.last-s.first+1 != uint64(s.count) || len(c.open) != s.count || c.loading != nil &&
		c.loaded >= s.first {
		return
	}
	s.recorded = true
	j := t.journal
	record := j.record.write(&storedStretch{*s, c.ids.seed, c.open}, now)
	t.note().Set(j.numberKey(kindStretch, s.first), record, nil)
}

// removeStretch has the record removed of the stretch that begins with a message.
func (t *topic) removeStretch(first uint64) {
	t.note().Delete(t.journal.numberKey(kindStretch, first))
	t.journal.thawed = true
}

// walk leaves out the first message, which is in the key.
func (s *storedStretch) walk(w *walk) {
	w.uints(&s.seed, &s.last)
	count(w, &s.bytes, 1<<62)
	w.uints(&s.place, &s.lastPlace)
	w.tick(&s.due)
	if !w.reading {
		for _, h := range s.hashes {
			w.data = binary.LittleEndian.AppendUint64(w.data, h)
		}
		return
	}
	for ; len(w.data) >= 8; w.data = w.data[8:] {
		s.hashes = append(s.hashes, binary.LittleEndian.Uint64(w.data))
	}
	s.recorded, s.count = true, len(s.hashes)
	if s.count == 0 || s.last-s.first+1 != uint64(s.count) || s.lastPlace < s.place {
		w.fail(fmt.Errorf("%d messages do not fit between 0-%d and 0-%d", s.count, s.first, s.last))
	}
}

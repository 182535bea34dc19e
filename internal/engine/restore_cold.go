package engine

import "github.com/ferrymq/ferry/driver"

// staysCold reports whether a message without a state of its own need not be in memory: it is plain, the windows of all
// groups are full, and it comes behind all that is cold so far.
func (r *restorer) staysCold(f *found) bool {
	t, h := r.t, &f.head
	if t.e.o.Window == 0 || r.warm || h.state != fanned || h.expires != 0 || f.message == nil ||
		f.message.Priority != driver.Normal ||
		f.message.TTL != 0 || r.claims[f.seq] != nil || !t.wantsCold(h.fan) || !t.cold.ids.covers(f.seq) {
		return false
	}
	n := len(t.cold.stretches)
	return n == 0 || h.fan > t.cold.stretches[n-1].lastPlace
}

// keepCold counts a message that stays in the store only.
func (r *restorer) keepCold(f *found) {
	t := r.t
	t.countCold(1, int64(f.size), f.head.fan)
	hash := t.cold.ids.hash(f.message.ID)
	t.addCold(f.seq, f.head.fan, r.now.read(f.head.due), int64(f.size), hash, r.now)
	t.cold.keys.note(f.message.Key, f.head.fan)
	t.cold.ids.add(hash, f.seq)
}

// restoreCold takes over what the chunks say about cold messages, if their sums can be right.
func (r *restorer) restoreCold(s *storedCold) bool {
	t := r.t
	if s.tail.count == 0 || s.tail.ids.count > s.tail.count {
		return false
	}
	t.cold = *s.tail
	t.stats.Messages += int64(s.tail.count)
	for _, x := range s.tail.stretches {
		t.stats.Bytes += x.bytes
	}
	for _, x := range s.groups {
		if g := r.groups[x.number]; g != nil {
			g.cold = x.cold
			g.count[ready] += x.cold
		}
	}
	return true
}

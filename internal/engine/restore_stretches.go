package engine

// readStretches reads which messages need not be read. What is recorded but not used is removed: it would be wrong as
// soon as one of its messages changes.
func (r *restorer) readStretches() (use []storedStretch, err error) {
	t := r.t
	from, to := rangeOf(r.number, kindStretch)
	err = r.scan(from, to, func(first uint64, _ bool, _, value []byte) error {
		s := storedStretch{stretch: stretch{first: first}}
		if err := readRecord(value, &s, r.now); err != nil || !r.usable(&s, use) {
			t.removeStretch(first) // its messages are read
			return nil
		}
		use = append(use, s)
		t.cold.ids.seed = s.seed // all have the same
		return nil
	})
	return use, err
}

// usable reports whether all groups see all messages of a stretch, or none of them, and it follows those before it.
func (r *restorer) usable(s *storedStretch, before []storedStretch) bool {
	if n := len(before); n > 0 && (s.seed != before[0].seed || s.first <= before[n-1].last ||
		s.place <= before[n-1].lastPlace) {
		return false
	}
	seen := false
	for _, g := range r.t.groups {
		if g.since >= s.place && g.since < s.lastPlace {
			return false
		}
		seen = seen || g.since < s.place
	}
	return seen && r.t.e.o.Window > 0 && s.first >= r.t.head && s.last <= r.t.seq
}

// keepStretch counts the messages of a stretch that stay in the store only.
func (r *restorer) keepStretch(s *storedStretch) {
	t := r.t
	c := &t.cold
	t.countCold(s.count, s.bytes, s.place)
	for i, h := range s.hashes {
		c.ids.add(h, s.first+uint64(i))
	}
	c.keys.least = s.lastPlace // nothing is known of their keys
	c.count += s.count
	c.stretches = append(c.stretches, s.stretch)
	c.open = c.open[:0]
}

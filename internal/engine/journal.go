package engine

import "github.com/ferrymq/ferry/driver"

// journal collects what one step changes in a topic, so that it is stored as one batch before the topic is unlocked.
// It notes which messages changed, not how: what is stored is how they are when the step ends.
type journal struct {
	number  uint32 // of the topic, in its keys
	batch   Batch  // of the step, as far as it is known before the step ends: all but messages and the topic itself
	noted   bool   // something of this topic is in the batch
	touched []*entry
	changed bool // the topic itself
	synced  bool // somebody waits for the step to survive a power loss
	last    Round

	cleared uint64 // everything before it is gone from the store, in one piece
	removed int    // messages since the last sweep
	thawed  bool   // stretches were, since then

	evict []evictable

	unsynced []unsynced // rounds with new messages, in order
	safe     uint64     // messages up to here survive a power loss

	message driver.Message // scratch
	key     []byte
	value   []byte
	record  walk
	claims  claimRecord
	state   storedState
	known   known
}

// touch notes that a message changed.
func (t *topic) touch(e *entry) {
	if t.journal != nil && !e.is(touched) {
		e.flags |= touched
		t.journal.touched = append(t.journal.touched, e)
	}
}

// alter notes that the topic itself changed, and that its change is to survive a power loss.
func (t *topic) alter() {
	if t.journal != nil {
		t.journal.changed, t.journal.synced = true, true
	}
}

// note returns the batch of the step, for a record that is not about a message or the topic itself.
func (t *topic) note() Batch {
	j := t.journal
	if j.noted = true; j.batch == nil {
		j.batch = t.e.o.Store.Batch()
	}
	return j.batch
}

// numberKey is the key of a record of the topic with a number, until the next key is made.
func (j *journal) numberKey(kind byte, n uint64) []byte {
	j.key = appendNumberKey(j.key[:0], j.number, kind, n)
	return j.key
}

// claimed notes what was claimed, and returns the receipt that its claims share.
func (t *topic) claimed(g *group, picked []*item, number uint64) *receipt {
	j := t.journal
	if j == nil {
		return nil
	}
	j.claims = claimRecord{g.number, j.claims.seqs[:0]}
	for _, it := range picked {
		j.claims.seqs = append(j.claims.seqs, it.e.seq)
	}
	t.note().Set(j.numberKey(kindClaim, number), j.record.write(&j.claims, moment{}), nil)
	return &receipt{number: number, left: len(picked)}
}

// release notes that one claim of a receipt is over.
func (t *topic) release(r *receipt) {
	if r.left--; r.left == 0 {
		t.note().Delete(t.journal.numberKey(kindClaim, r.number))
	}
}

func (j *journal) empty() bool { return !j.noted && len(j.touched) == 0 && !j.changed }

// flush stores the step, and returns the round to wait for: an earlier one if nothing changed, nil without a store.
func (t *topic) flush(now moment) Round {
	j := t.journal
	if j == nil {
		return nil
	}
	if !j.empty() {
		b, synced := t.note(), j.synced
		fresh := t.fill(b, now)
		t.appended(fresh, t.e.o.Store.Append(b, synced))
	}
	t.evictWritten()
	return j.last
}

// appended notes that a step was given to the store, with these new messages.
func (t *topic) appended(fresh []*entry, r Round) {
	t.journal.last = r
	t.noteFresh(fresh, r)
	t.cache(fresh)
}

// fill moves what the step changed into a batch, and returns the new messages among it.
func (t *topic) fill(b Batch, now moment) (fresh []*entry) {
	j := t.journal
	fresh = j.touched[:0]
	for _, e := range j.touched {
		e.flags &^= touched
		if t.save(b, e, now) {
			fresh = append(fresh, e)
		}
	}
	clear(j.touched[len(fresh):])
	if j.touched = j.touched[:0]; cap(j.touched) > 4096 {
		j.touched = nil
	}
	t.sweep(b)
	j.key = appendPrefix(j.key[:0], j.number, kindTopic)
	t.head = t.first()
	b.SetLatest(j.key, j.record.write(&t.topicRecord, now))
	j.batch, j.noted, j.changed, j.synced = nil, false, false, false
	return fresh
}

// save stores a message as it is now, and reports whether it is new.
func (t *topic) save(b Batch, e *entry, now moment) (fresh bool) {
	j := t.journal
	if e.state == atRest {
		t.unsave(b, e)
		return false
	}
	fresh = !e.is(saved)
	if fresh {
		j.value = j.appendContent(j.value[:0], e)
		j.record.data = appendHead(j.record.data[:0], headOf(e, now))
		b.Set(j.numberKey(kindMessage, e.seq), j.record.data, j.value)
		e.flags |= saved
		if !e.is(recorded) && e.unchanged(t) {
			return true
		}
	}
	j.key = appendStateKey(j.key[:0], j.number, e.seq)
	j.state.of(e, now)
	b.Set(j.key, j.record.write(&j.state, now), nil)
	e.flags |= recorded
	return fresh
}

// unsave removes a message that is gone.
func (t *topic) unsave(b Batch, e *entry) {
	j := t.journal
	if e.is(saved) {
		b.Delete(j.numberKey(kindMessage, e.seq))
	}
	if e.is(recorded) {
		j.key = appendStateKey(j.key[:0], j.number, e.seq)
		b.Delete(j.key)
	}
	j.removed++
	t.uncache(e)
}

// unchanged reports whether the head of a stored message says all there is to say.
func (e *entry) unchanged(t *topic) bool {
	if e.state == invalid {
		return false
	}
	if e.state != fanned { // cold ones are ready for all groups
		return true
	}
	n := 0
	for it := range e.all() {
		if !isPlain(it) {
			return false
		}
		n++
	}
	return n == len(t.groups)
}

// sweepEmpty is by how much less is enough in a topic that has become empty.
const sweepEmpty = 50

// sweep covers the dead beginning of the log with one tombstone, so that the store can drop whole files.
func (t *topic) sweep(b Batch) {
	j := t.journal
	first, enough := t.first(), uint64(t.e.o.SweepEvery)
	if t.log.count+t.cold.count == 0 {
		first, enough = t.seq+1, max(1, enough/sweepEmpty)
	}
	if uint64(j.removed) < enough || first < j.cleared+enough {
		return
	}
	b.DeleteRange(appendNumberKey(nil, j.number, kindMessage, j.cleared),
		appendNumberKey(nil, j.number, kindMessage, first))
	if j.thawed { // so that the records of stretches go in one piece, too
		b.DeleteRange(appendNumberKey(nil, j.number, kindStretch, j.cleared),
			appendNumberKey(nil, j.number, kindStretch, first))
	}
	j.cleared, j.removed, j.thawed = first, 0, false
}

// flushAll stores what one step changed in several topics, as one batch: see lockAll.
func (e *Engine) flushAll(ts map[string]*topic, now moment) Round {
	var b Batch
	synced := false
	fresh := make(map[*topic][]*entry, len(ts))
	for _, t := range ts {
		if j := t.journal; !j.empty() {
			b, synced = j.batch, synced || j.synced
			fresh[t] = t.fill(b, now)
		}
		t.journal.batch = nil
	}
	round := e.o.Store.Append(b, synced)
	for t, es := range fresh {
		t.appended(es, round)
	}
	return round
}

// obliterate removes everything of the topic from the store.
func (t *topic) obliterate(now moment) Round {
	j := t.journal
	if j == nil {
		return nil
	}
	t.flush(now)
	b := t.e.o.Store.Batch()
	b.DeleteRange(rangeOfTopic(j.number))
	for _, e := range t.log.all() {
		t.uncache(e)
	}
	return t.e.o.Store.Append(b, true)
}

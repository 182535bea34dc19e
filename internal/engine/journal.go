package engine

import "github.com/ferrymq/ferry/driver"

// journal collects what one step changes in a topic, so that it is stored as one batch before the topic is unlocked.
// It notes which messages changed, not how: what is stored is how they are when the step ends.
type journal struct {
	number  uint32 // of the topic, in its keys
	touched []*entry
	taken   []taken    // claims that began
	over    []*receipt // whose claims have all ended
	noted   []known    // dedup ids, and own ids
	notedID []string
	forgot  []forgotten
	closed  []storedStretch // that are recorded
	opened  []uint64        // first messages of those that are not any more
	changed bool            // the topic itself
	synced  bool            // somebody waits for the step to survive a power loss
	last    Round

	cleared uint64 // everything before it is gone from the store, in one piece
	removed int    // messages since the last sweep
	thawed  bool   // stretches were, since then

	evict []evictable

	unsynced []unsynced // rounds with new messages, in order
	safe     uint64     // messages up to here survive a power loss

	message driver.Message // scratch
	key     []byte
	head    []byte
	value   []byte
}

// taken is a receipt that is to be stored.
type taken struct {
	receipt *receipt
	group   uint32
	record  []byte
}

// forgotten is a remembered id that is no longer needed.
type forgotten struct {
	kind byte
	id   string
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

// noteKnown notes an id that is to be remembered.
func (t *topic) noteKnown(kind byte, id string, k known) {
	if j := t.journal; j != nil {
		j.noted, j.notedID = append(j.noted, k), append(j.notedID, string(kind)+id)
	}
}

func (t *topic) noteForgotten(kind byte, id string) {
	if j := t.journal; j != nil {
		j.forgot = append(j.forgot, forgotten{kind, id})
	}
}

// claimed notes what was claimed, and returns the receipt that its claims share.
func (t *topic) claimed(g *group, picked []*item, number uint64) *receipt {
	j := t.journal
	if j == nil {
		return nil
	}
	r := &receipt{number: number, left: len(picked)}
	j.taken = append(j.taken, taken{r, g.number, appendReceipt(nil, g.number, picked)})
	return r
}

// release notes that one claim of a receipt is over.
func (t *topic) release(r *receipt) {
	if r.left--; r.left == 0 {
		t.journal.over = append(t.journal.over, r)
	}
}

func (j *journal) empty() bool {
	return len(j.touched)+len(j.taken)+len(j.over)+len(j.noted)+len(j.forgot)+len(j.closed)+len(j.opened) == 0 &&
		!j.changed
}

// flush stores the step, and returns the round to wait for: an earlier one if nothing changed, nil without a store.
func (t *topic) flush(now moment) Round {
	j := t.journal
	if j == nil {
		return nil
	}
	if !j.empty() {
		b := t.e.o.Store.Batch()
		synced := j.synced
		fresh := t.fill(b, now)
		j.last = t.e.o.Store.Append(b, synced)
		t.noteFresh(fresh, j.last)
		t.cache(fresh)
	}
	t.evictWritten()
	return j.last
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
	t.saveClaims(b)
	t.saveKnown(b)
	t.saveStretches(b, now)
	t.sweep(b)
	j.key = appendPrefix(j.key[:0], j.number, kindTopic)
	j.value = appendTopic(j.value[:0], t, now)
	b.SetLatest(j.key, j.value)
	j.changed, j.synced = false, false
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
		j.key = appendNumberKey(j.key[:0], j.number, kindMessage, e.seq)
		j.head = appendHead(j.head[:0], headOf(e, now))
		j.value = j.appendContent(j.value[:0], e)
		b.Set(j.key, j.head, j.value)
		e.flags |= saved
		if !e.is(recorded) && e.unchanged(t) {
			return true
		}
	}
	j.key = appendStateKey(j.key[:0], j.number, e.seq)
	j.value = appendState(j.value[:0], e, now)
	b.Set(j.key, j.value, nil)
	e.flags |= recorded
	return fresh
}

// unsave removes a message that is gone.
func (t *topic) unsave(b Batch, e *entry) {
	j := t.journal
	if e.is(saved) {
		j.key = appendNumberKey(j.key[:0], j.number, kindMessage, e.seq)
		b.Delete(j.key)
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
	for it := e.items; it != nil; it = it.sibling {
		if it.g == nil {
			continue
		}
		if !isPlain(it) {
			return false
		}
		n++
	}
	return n == len(t.groups)
}

func (t *topic) saveClaims(b Batch) {
	j := t.journal
	for i := range j.taken {
		j.key = appendNumberKey(j.key[:0], j.number, kindClaim, j.taken[i].receipt.number)
		b.Set(j.key, j.taken[i].record, nil)
		j.taken[i] = taken{}
	}
	for i, r := range j.over {
		j.key = appendNumberKey(j.key[:0], j.number, kindClaim, r.number)
		b.Delete(j.key)
		j.over[i] = nil
	}
	j.taken, j.over = j.taken[:0], j.over[:0]
}

func (t *topic) saveKnown(b Batch) {
	j := t.journal
	for i, f := range j.forgot {
		j.key = appendTextKey(j.key[:0], j.number, f.kind, f.id)
		b.Delete(j.key)
		j.forgot[i] = forgotten{}
	}
	for i, k := range j.noted {
		id := j.notedID[i]
		j.key = appendTextKey(j.key[:0], j.number, id[0], id[1:])
		j.value = appendKnown(j.value[:0], k)
		b.Set(j.key, j.value, nil)
		j.noted[i], j.notedID[i] = known{}, ""
	}
	j.forgot, j.noted, j.notedID = j.forgot[:0], j.noted[:0], j.notedID[:0]
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

// flushAll stores what one step changed in several topics, as one batch.
func (e *Engine) flushAll(ts map[string]*topic, now moment) Round {
	b := e.o.Store.Batch()
	synced, any := false, false
	fresh := make(map[*topic][]*entry, len(ts))
	for _, t := range ts {
		if j := t.journal; !j.empty() {
			synced, any = synced || j.synced, true
			fresh[t] = t.fill(b, now)
		}
	}
	if !any {
		b = nil
	}
	round := e.o.Store.Append(b, synced)
	for t, es := range fresh {
		t.journal.last = round
		t.noteFresh(es, round)
		t.cache(es)
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

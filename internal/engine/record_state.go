package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

// storedState is where a message is now, for the topic and for each group.
type storedState struct {
	state                 entryState
	fan                   uint64
	due, expires, settled int64 // stamps; settled: since when it is kept, or when it was found that it cannot be decoded
	problem               string
	items                 []storedItem
}

// storedItem is a message as one group sees it. What is in flight is stored as ready: the record of its claim tells.
type storedItem struct {
	group    uint32
	plain    bool // as it became ready: nothing else is stored
	state    itemState
	cause    driver.Cause
	toTail   bool
	place    uint64
	since    int64 // stamp
	failures uint32
	lost     uint16
	lapsed   bool   // a lease was lost, counted or not
	begun    uint64 // the claim whose handler has begun
	rounds   uint16
	resolved uint64 // claims up to this number are over
	buried   uint64
	history  []driver.Failure
	edited   *driver.Message
	dead     *driver.DeadLetter
	ending   ending
}

const plainItem = 0xff // in place of the state

// Versions of the records of states: the oldest that has all additions which its items have, so that older programs
// read what they understand. Without additions it is recordVersion.
const (
	lossesVersion = 2 // hasBegun, hasLapsed
	stateVersion  = 3 // hasEnding; the newest
)

// Additions of an item: bits of what says whether more follows.
const (
	hasMore   = 1 << iota // history, edited content, dead letter
	hasBegun              // the number of a claim
	hasLapsed             // a lease was lost, and the count taken back
	hasEnding             // how it was settled
)

// additions says what is stored of an item besides what every item has.
func (it *item) additions() (bits byte) {
	if it.more != nil {
		bits |= hasMore
	}
	if it.begun() {
		bits |= hasBegun
	}
	if it.is(leaseLost) && it.lost == 0 {
		bits |= hasLapsed
	}
	if it.more != nil && it.more.ending.known {
		bits |= hasEnding
	}
	return bits
}

// begun reports whether the handler of the item has begun.
func (it *item) begun() bool { return it.claim != nil && it.claim.begun }

// isPlain reports whether an item is just as it became ready. One in flight is: see storedItem.
func isPlain(it *item) bool {
	return (it.state == ready || it.state == inflight) && it.cause == driver.CauseFirst && it.Place == it.e.fan &&
		it.failures == 0 && !it.is(leaseLost) && it.more == nil && !it.begun()
}

// appendState appends the record of where a message is now.
func appendState(dst []byte, e *entry, now moment) []byte {
	start := len(dst)
	dst = append(dst, recordVersion, byte(e.state))
	for it := e.items; it != nil; it = it.sibling {
		dst[start] = max(dst[start], versionOf(it.additions()))
	}
	dst = binary.AppendUvarint(dst, e.fan)
	dst = binary.AppendVarint(dst, now.stamp(e.due))
	dst = binary.AppendVarint(dst, now.stamp(e.expires()))
	settled := int64(0)
	if e.state == fanned && e.settled() {
		settled = now.at.UnixNano() // only what settles it changes it
	}
	problem := ""
	if e.state == invalid {
		problem, settled = e.extra.problem, e.extra.found
	}
	dst = binary.AppendVarint(dst, settled)
	dst = appendBytes(dst, problem)
	n := 0
	for it := e.items; it != nil; it = it.sibling {
		if it.g != nil {
			n++
		}
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	for it := e.items; it != nil; it = it.sibling {
		if it.g != nil {
			dst = appendItem(dst, it, now)
		}
	}
	return seal(dst, start)
}

func appendItem(dst []byte, it *item, now moment) []byte {
	dst = binary.AppendUvarint(dst, uint64(it.g.number))
	if isPlain(it) {
		return append(dst, plainItem)
	}
	state, resolved, since := it.state, it.g.t.e.claims.Load(), it.since
	if it.state == inflight {
		state, resolved = ready, it.claim.number-1
	}
	dst = append(dst, byte(state), byte(it.cause))
	dst = appendBool(dst, it.Tail)
	dst = binary.AppendUvarint(dst, it.Place)
	dst = binary.AppendVarint(dst, now.stamp(since))
	dst = binary.AppendUvarint(dst, uint64(it.failures))
	dst = binary.AppendUvarint(dst, uint64(it.lost))
	rounds := uint16(0)
	if it.more != nil {
		rounds = it.more.rounds
	}
	dst = binary.AppendUvarint(dst, uint64(rounds))
	dst = binary.AppendUvarint(dst, resolved)
	bits := it.additions()
	if dst = append(dst, bits); bits&hasBegun != 0 {
		dst = binary.AppendUvarint(dst, it.claim.number)
	}
	if it.more == nil {
		return dst
	}
	if bits&hasEnding != 0 {
		dst = appendBytes(binary.AppendUvarint(dst, uint64(it.more.ending.took)), it.more.ending.by)
	}
	dst = binary.AppendUvarint(dst, it.more.buried)
	dst = appendBytes(dst, envelope.AppendHistory(nil, it.more.history...))
	dst = appendEdited(dst, it.more.edited)
	var dl []byte
	if it.more.dead != nil {
		dl = envelope.AppendDeadLetter(nil, it.more.dead)
	}
	return appendBytes(dst, dl)
}

// appendEdited appends content that an operator wrote, as an envelope of its own.
func appendEdited(dst []byte, c *entry) []byte {
	if c == nil {
		return appendBytes(dst, "")
	}
	return appendBytes(dst, envelope.Append(nil, c.message("", c)))
}

// decodeState reads what appendState wrote. It keeps nothing of record.
func decodeState(record []byte) (*storedState, error) {
	r, version := unsealUpTo(record, stateVersion)
	s := &storedState{state: entryState(r.upTo(uint64(invalid))), fan: r.uint(), due: r.int(), expires: r.int(),
		settled: r.int(), problem: r.text()}
	n := r.uint()
	for i := uint64(0); i < n && r.err == nil; i++ {
		s.items = append(s.items, decodeItem(r, version))
	}
	if err := r.end(); err != nil {
		return nil, fmt.Errorf("state of a message: %w", err)
	}
	return s, nil
}

func decodeItem(r *reader, version byte) storedItem {
	it := storedItem{group: r.uint32()}
	if len(r.rest) > 0 && r.rest[0] == plainItem {
		r.rest = r.rest[1:]
		it.plain, it.state = true, ready
		return it
	}
	it.state, it.cause = itemState(r.upTo(uint64(done))), driver.Cause(r.upTo(uint64(driver.CauseFailover)))
	it.toTail, it.place, it.since = r.bool(), r.uint(), r.int()
	it.failures, it.lost, it.rounds = uint32(r.upTo(math.MaxInt32)), r.uint16(), r.uint16()
	it.resolved = r.uint()
	if it.state == inflight && r.err == nil {
		r.err = fmt.Errorf("item state %d is never stored", it.state)
	}
	bits := r.upTo(additionsOf(version))
	if bits&hasBegun != 0 {
		it.begun = r.uint()
	}
	if bits&hasEnding != 0 {
		it.ending = ending{known: true, took: time.Duration(r.upTo(math.MaxInt64)), by: r.text()}
	}
	it.lapsed = it.lost > 0 || bits&hasLapsed != 0
	if bits&hasMore != 0 {
		it.buried = r.uint()
		decodeMore(r, &it)
	}
	if it.state == dead && it.dead == nil && r.err == nil {
		r.err = fmt.Errorf("a dead letter has no record")
	}
	return it
}

// additionsOf returns which additions a version of the record knows.
func additionsOf(version byte) uint64 {
	switch {
	case version < lossesVersion:
		return hasMore
	case version < stateVersion:
		return hasMore | hasBegun | hasLapsed
	}
	return hasMore | hasBegun | hasLapsed | hasEnding
}

// versionOf returns the oldest version of the record that knows these additions.
func versionOf(bits byte) byte {
	switch {
	case bits >= hasEnding:
		return stateVersion
	case bits > hasMore:
		return lossesVersion
	}
	return recordVersion
}

func decodeMore(r *reader, it *storedItem) {
	history, edited, dl := r.bytes(), r.bytes(), r.bytes()
	if r.err != nil {
		return
	}
	if it.history, r.err = envelope.DecodeHistory(history); r.err != nil {
		return
	}
	if len(edited) > 0 {
		if it.edited, r.err = envelope.Decode(append([]byte(nil), edited...)); r.err != nil {
			return
		}
	}
	if len(dl) > 0 {
		it.dead, r.err = envelope.DecodeDeadLetter(dl)
	}
}

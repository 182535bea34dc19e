package kafka

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// What is committed beside an offset is text: parts that end with ';', each begun by a letter, then the done-set.
const (
	replayPart       = 'R' // what comes before this offset is a replay: the group was reset
	cleanPart        = 'C' // the owner left in order: nothing else was delivered
	heldPart         = 'H' // offsets that were delivered and not settled: lost, if this is the owner's last word
	returnedPart     = 'G' // offsets that were delivered and given back
	movedPart        = 'B' // offsets that were delivered by an owner before this one, and not since: a rebalance came between
	heldSidePart     = 'h' // as heldPart, by offset of the side log
	returnedSidePart = 'g' // as returnedPart, by offset of the side log
	movedSidePart    = 'b' // as movedPart, by offset of the side log

	markPart = 'T' // names the transaction that committed it

	// listRoom is how many characters the done-set leaves to the lists; they get all that it does not need. What is held and does not fit in is delivered
	// again uncounted, what was given back goes to the side log; see storeUnnamed.
	listRoom = 600
)

// cleanText is what a group begins with.
const cleanText = string(cleanPart) + ";"

// listParts are the lists of offsets, in the order they are written.
const listParts = "HGBhgb"

// place is an offset, of the main topic or of the side log.
type place struct {
	side   bool
	offset int64
}

// readMetadata takes what is committed beside an offset. Text of others is ignored.
func (s *doneSet) readMetadata(text string) {
	s.before = map[place]byte{}
	for len(text) > 0 && strings.IndexByte("NRCT"+listParts, text[0]) >= 0 {
		part, rest, found := strings.Cut(text[1:], ";")
		if !found {
			return
		}
		switch kind := text[0]; kind {
		case tallyPart, markPart: // see readTally, findOut
		case cleanPart:
			s.clean = true
		case replayPart:
			s.replay, _ = strconv.ParseInt(part, 10, 64)
		default:
			for _, off := range readOffsets(part) {
				s.before[place{kind >= 'a', off}] = kind &^ 0x20
			}
		}
		text = rest
	}
	s.decode(text)
}

// metadata writes what is committed beside the base of a partition.
func (p *partition) metadata() string {
	text, _ := p.compose("", p.done, nil)
	return text
}

// compose writes the preface, the lists and the done-set. It also returns what was given back and is not named for want of room.
func (p *partition) compose(mark string, done *doneSet, ending map[*item]bool) (text string, unnamed []*item) {
	text = p.preface(mark)
	beyond := done.encode(maxMetadata - len(text) - listRoom)
	lists, unnamed := p.deliveries(ending, maxMetadata-len(text)-len(beyond))
	return text + lists + beyond, unnamed
}

// metadataWith is metadata with a mark, for when some items are settled. It reports whether all their offsets fit in; what is held is left out for them.
func (p *partition) metadataWith(mark string, done *doneSet, ending map[*item]bool, offsets []int64) (string, bool) {
	text, _ := p.compose(mark, done, ending)
	if done.told(text, offsets) {
		return text, true
	}
	text = p.preface(mark)
	text += done.encode(maxMetadata - len(text))
	return text, done.told(text, offsets)
}

// told reports whether a text says of all these offsets that they are done.
func (s *doneSet) told(text string, offsets []int64) bool {
	again := newDoneSet(s.base)
	again.readMetadata(text)
	return !slices.ContainsFunc(offsets, func(off int64) bool { return !again.has(off) })
}

// preface is what comes first: counts, a mark, what is a replay, and whether the owner leaves.
func (p *partition) preface(mark string) string {
	text := p.current().String() + mark
	if p.done.replay > p.done.base {
		text += fmt.Sprintf("%c%d;", replayPart, p.done.replay)
	}
	if p.leaving || p.m.visiting && p.done.clean { // a visit changes nothing about it
		text += cleanText
	}
	return text
}

// deliveries lists what is held or was given back, but for items that are about to be settled, in so many characters. What is held comes first; it
// also returns what was given back and is not in the list.
func (p *partition) deliveries(ending map[*item]bool, room int) (text string, unnamed []*item) {
	lists, returned := map[byte][]int64{}, map[place]*item{}
	for at, kind := range p.done.before { // what is not fetched yet stays as it was
		if !at.side && at.offset >= p.done.next {
			lists[kind] = append(lists[kind], at.offset)
		}
	}
	for it := range p.items.all() {
		at := it.placeNow()
		kind := p.dealt(it, at)
		if kind == 0 || ending[it] || !at.side && p.done.has(at.offset) {
			continue
		}
		if kind != heldPart {
			returned[at] = it
		}
		if at.side {
			kind |= 0x20
		}
		lists[kind] = append(lists[kind], at.offset)
	}
	for i := range len(listParts) {
		kind := listParts[i]
		part, left := writeOffsets(kind, lists[kind], room-len(text))
		text += part
		for _, off := range left {
			if it := returned[place{kind >= 'a', off}]; it != nil {
				unnamed = append(unnamed, it)
			}
		}
	}
	return text, unnamed
}

// placeNow is where an item is stored.
func (it *item) placeNow() place {
	if it.side != "" {
		return place{true, it.at}
	}
	return place{false, it.offset}
}

// dealt is the list that an item belongs in, or 0. A visit leaves everything in the lists where it was.
func (p *partition) dealt(it *item, at place) byte {
	switch {
	case p.m.visiting:
		return p.done.before[at]
	case it.state == inflight && it.claimed != nil && (it.claimed.delivery != nil || !p.leaving): // it may be delivered before the next commit
		return heldPart
	case at.side && it.storedCause == it.cause:
		return 0
	case it.cause == driver.CauseReleased:
		return returnedPart
	case it.cause == driver.CauseRebalance:
		return movedPart
	}
	return 0
}

// writeOffsets writes a list as runs: how many are left out since the last, doubled, and one more if others follow at once, whose number less one comes then. It
// returns what there was no room for.
func writeOffsets(part byte, offsets []int64, room int) (text string, left []int64) {
	if len(offsets) == 0 {
		return "", nil
	}
	slices.Sort(offsets)
	offsets = slices.Compact(offsets)
	limit := base64.RawStdEncoding.DecodedLen(max(0, room-2)) - 2*binary.MaxVarintLen64
	var buf []byte
	for next := int64(0); len(offsets) > 0 && len(buf) < limit; {
		n := 1
		for n < len(offsets) && offsets[n] == offsets[0]+int64(n) {
			n++
		}
		gap := uint64(offsets[0]-next) << 1
		if n > 1 {
			buf = binary.AppendUvarint(binary.AppendUvarint(buf, gap|1), uint64(n-2))
		} else {
			buf = binary.AppendUvarint(buf, gap)
		}
		next = offsets[n-1] + 1
		offsets = offsets[n:]
	}
	if len(buf) == 0 {
		return "", offsets
	}
	return string(part) + base64.RawStdEncoding.EncodeToString(buf) + ";", offsets
}

// maxListed bounds what is read of a list that others may have written.
const maxListed = 1 << 20

func readOffsets(text string) (offsets []int64) {
	buf, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	next, ok := uint64(0), true
	number := func() uint64 {
		n, size := binary.Uvarint(buf)
		if ok = ok && size > 0; !ok {
			return 0
		}
		buf = buf[size:]
		return n
	}
	for len(buf) > 0 {
		gap, n := number(), uint64(1)
		if gap&1 == 1 {
			n = number() + 2
		}
		if !ok || n > maxListed-uint64(len(offsets)) {
			break
		}
		for next += gap >> 1; n > 0; n-- {
			offsets = append(offsets, int64(next))
			next++
		}
	}
	return offsets
}

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
	heldSidePart     = 'h' // as heldPart, by offset of the side log
	returnedSidePart = 'g' // as returnedPart, by offset of the side log

	markPart = 'T' // names the transaction that committed it

	maxHeldBytes = 600 // of each list; what does not fit is delivered again uncounted
)

// cleanText is what a group begins with.
const cleanText = string(cleanPart) + ";"

// listParts are the lists of offsets, in the order they are written.
const listParts = "HGhg"

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
	text := p.preface("")
	text += p.deliveries(nil)
	return text + p.done.encode(maxMetadata-len(text))
}

// metadataWith is metadata with a mark, for when some items are settled. It reports whether all their offsets fit in; what is held is left out for them.
func (p *partition) metadataWith(mark string, done *doneSet, ending map[*item]bool, offsets []int64) (string, bool) {
	for _, lists := range []string{p.deliveries(ending), ""} {
		text := p.preface(mark) + lists
		text += done.encode(maxMetadata - len(text))
		again := newDoneSet(done.base)
		again.readMetadata(text)
		if !slices.ContainsFunc(offsets, func(off int64) bool { return !again.has(off) }) {
			return text, true
		}
	}
	return "", false
}

// preface is what comes first: counts, a mark, what is a replay, and whether the owner leaves.
func (p *partition) preface(mark string) string {
	text := p.current().String() + mark
	if p.done.replay > p.done.base {
		text += fmt.Sprintf("%c%d;", replayPart, p.done.replay)
	}
	if p.leaving || p.m.visiting {
		text += cleanText
	}
	return text
}

// deliveries lists what is held or was given back, but for items that are about to be settled.
func (p *partition) deliveries(ending map[*item]bool) (text string) {
	lists := map[byte][]int64{}
	for at, kind := range p.done.before { // what is not fetched yet stays as it was
		if !at.side && at.offset >= p.done.next {
			lists[kind] = append(lists[kind], at.offset)
		}
	}
	for it := range p.items.all() {
		kind, at := byte(returnedPart), it.offset
		switch {
		case ending[it]:
			continue
		case it.state == inflight && it.claimed != nil:
			kind = heldPart
		case it.cause != driver.CauseReleased:
			continue
		}
		if it.side != "" {
			kind, at = kind|0x20, it.at
		} else if p.done.has(at) {
			continue
		}
		lists[kind] = append(lists[kind], at)
	}
	for i := range len(listParts) {
		text += writeOffsets(listParts[i], lists[listParts[i]])
	}
	return text
}

func writeOffsets(part byte, offsets []int64) string {
	if len(offsets) == 0 {
		return ""
	}
	slices.Sort(offsets)
	var buf []byte
	last := int64(0)
	for _, off := range slices.Compact(offsets) {
		if len(buf)+binary.MaxVarintLen64 > maxHeldBytes {
			break
		}
		buf = binary.AppendUvarint(buf, uint64(off-last))
		last = off
	}
	return string(part) + base64.RawStdEncoding.EncodeToString(buf) + ";"
}

func readOffsets(text string) (offsets []int64) {
	buf, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	for last := int64(0); len(buf) > 0; {
		n, size := binary.Uvarint(buf)
		if size <= 0 {
			break
		}
		buf = buf[size:]
		last += int64(n)
		offsets = append(offsets, last)
	}
	return offsets
}

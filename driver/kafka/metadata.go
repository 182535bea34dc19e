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
	replayPart   = 'R' // what comes before this offset is a replay: the group was reset
	heldPart     = 'H' // offsets that were delivered and not settled: lost, if this is the owner's last word
	returnedPart = 'G' // offsets that were delivered and given back

	maxHeldBytes = 600 // of each list; what does not fit is delivered again uncounted
)

// readMetadata takes what is committed beside an offset. Text of others is ignored.
func (s *doneSet) readMetadata(text string) {
	for len(text) > 0 && strings.IndexByte("RHG", text[0]) >= 0 {
		part, rest, found := strings.Cut(text[1:], ";")
		if !found {
			return
		}
		switch text[0] {
		case replayPart:
			s.replay, _ = strconv.ParseInt(part, 10, 64)
		case heldPart:
			s.heldBefore = readOffsets(s.base, part)
		case returnedPart:
			s.returnedBefore = readOffsets(s.base, part)
		}
		text = rest
	}
	s.decode(text)
}

// metadata writes what is committed beside the base of a partition.
func (p *partition) metadata() string {
	var held, returned []int64
	for _, it := range p.items {
		switch {
		case it.offset < 0 || p.done.has(it.offset):
		case it.state == inflight && it.claimed != nil:
			held = append(held, it.offset)
		case it.cause == driver.CauseReleased:
			returned = append(returned, it.offset)
		}
	}
	text := ""
	if p.done.replay > p.done.base {
		text = fmt.Sprintf("%c%d;", replayPart, p.done.replay)
	}
	return text + writeOffsets(heldPart, p.done.base, held) + writeOffsets(returnedPart, p.done.base, returned) + p.done.encode()
}

func writeOffsets(part byte, base int64, offsets []int64) string {
	if len(offsets) == 0 {
		return ""
	}
	slices.Sort(offsets)
	var buf []byte
	for _, off := range slices.Compact(offsets) {
		if len(buf)+binary.MaxVarintLen64 > maxHeldBytes {
			break
		}
		buf = binary.AppendUvarint(buf, uint64(off-base))
		base = off
	}
	return string(part) + base64.RawStdEncoding.EncodeToString(buf) + ";"
}

func readOffsets(base int64, text string) map[int64]bool {
	buf, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	offsets := map[int64]bool{}
	for len(buf) > 0 {
		n, size := binary.Uvarint(buf)
		if size <= 0 {
			break
		}
		buf = buf[size:]
		base += int64(n)
		offsets[base] = true
	}
	return offsets
}

package offsets

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// What is committed beside an offset is text: parts that end with ';', each begun by a letter, then the done-set.
const (
	ReplayPart   = 'R' // what comes before this offset is a replay: the group was reset
	cleanPart    = 'C' // the owner left in order: nothing else was delivered
	LeasedPart   = 'H' // offsets that were delivered and not settled: lost, if this is the owner's last word
	ReturnedPart = 'G' // offsets that were delivered and given back
	// offsets that were delivered by an owner before this one, and not since: a rebalance came between
	MovedPart         = 'B'
	leasedRetryPart   = 'h' // as LeasedPart, by offset of the retry log
	returnedRetryPart = 'g' // as ReturnedPart, by offset of the retry log
	movedRetryPart    = 'b' // as MovedPart, by offset of the retry log

	TagPart = 'T' // names the transaction that committed it

	// ListRoom is how many characters the done-set leaves to the lists; they get all that it does not need. What is
	// leased and does not fit in is delivered again uncounted, what was given back goes to the retry log.
	ListRoom = 600
)

// CleanText is what a group begins with.
const CleanText = string(cleanPart) + ";"

// ListParts are the lists of offsets, in the order they are written.
const ListParts = "HGBhgb"

// Location is an offset, of the main topic or of the retry log.
type Location struct {
	Retry  bool
	Offset int64
}

// ReadMetadata takes what is committed beside an offset. Text of others is ignored.
func (s *Set) ReadMetadata(text string) {
	s.Before = map[Location]byte{}
	for len(text) > 0 && strings.IndexByte("NRCT"+ListParts, text[0]) >= 0 {
		part, rest, found := strings.Cut(text[1:], ";")
		if !found {
			return
		}
		switch kind := text[0]; kind {
		case tallyPart, TagPart: // see ReadTally, and findOut of consumer
		case cleanPart:
			s.Clean = true
		case ReplayPart:
			s.Replay, _ = strconv.ParseInt(part, 10, 64)
		default:
			for _, off := range readOffsets(part) {
				s.Before[Location{kind >= 'a', off}] = kind &^ 0x20
			}
		}
		text = rest
	}
	s.Decode(text)
}

// Told reports whether a text says of all these offsets that they are done.
func (s *Set) Told(text string, offsets []int64) bool {
	again := NewSet(s.Base)
	again.ReadMetadata(text)
	return !slices.ContainsFunc(offsets, func(off int64) bool { return !again.Has(off) })
}

// WriteOffsets writes a list as runs: how many are left out since the last, doubled, and one more if others follow at
// once, whose number less one comes then. It returns what did not fit.
func WriteOffsets(part byte, offsets []int64, most int) (text string, left []int64) {
	if len(offsets) == 0 {
		return "", nil
	}
	slices.Sort(offsets)
	offsets = slices.Compact(offsets)
	limit := base64.RawStdEncoding.DecodedLen(max(0, most-2)) - 2*binary.MaxVarintLen64
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

package kafkakv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// The value of a record is
//
//	4 bytes  CRC-32C of what follows, little endian
//	1 byte   version
//	1 byte   kind
//	fields   of the kind; numbers are varints, texts have their length before them
//
// Every reader makes the same of the same bytes: what it takes for damaged is void for all. So nothing here, and
// nothing of the verdict in internal/kv, changes without a new version: whoever meets one that it does not know stops
// reading, since it cannot tell what the others make of it. A record has the oldest version that says what it means, so
// that older programs read what they can.
const (
	version = 1
	// versionRemembered is a deletion that is remembered under its request also if it finds nothing. Under version 1 it is
	// not.
	versionRemembered = 2
)

// Kinds of records.
const (
	kindWrite = 'w' // a write: to be judged where it stands
	kindTick  = 't' // shows what time it is
	kindChunk = 's' // a part of a snapshot
)

// Flags of a write.
const (
	flagDelete   = 1 << iota
	flagAbsent   // the condition is that there is nothing
	flagRevision // the condition is a revision, which follows
	flagTTL
	flagFence
	flagRequest
	flagQuiet
	flagsEnd
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errDamaged = errors.New("it is damaged")
	errNewer   = errors.New("it was written by a newer version")
)

// command is what a record says.
type command struct {
	version byte
	id      string // names the record for whoever wrote it
	bucket  string
	write   *driver.Write // nil: a tick
	chunk   *chunk
}

// chunk is a part of a snapshot.
type chunk struct {
	asOf  int64 // the snapshot is the state before this offset
	index uint64
	last  bool
	sum   uint32 // of the data of all, in the last
	data  []byte
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// seal begins a record; finish puts the checksum in.
func seal(kind byte, id string) []byte {
	return appendText([]byte{0, 0, 0, 0, version, kind}, id)
}

func finish(b []byte) []byte {
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

func encodeWrite(id, bucket string, w *driver.Write) []byte {
	flags := uint64(0)
	for flag, set := range map[uint64]bool{flagDelete: w.Delete, flagAbsent: w.If == driver.Absent,
		flagRevision: w.If != 0 && w.If != driver.Absent,
		flagTTL:      w.TTL > 0, flagFence: w.Fence != nil, flagRequest: w.Request != "", flagQuiet: w.Quiet} {
		if set {
			flags |= flag
		}
	}
	b := appendText(appendText(binary.AppendUvarint(seal(kindWrite, id), flags), bucket), w.Name)
	if flags&flagRevision != 0 {
		b = binary.AppendUvarint(b, uint64(w.If))
	}
	if flags&flagTTL != 0 {
		b = binary.AppendUvarint(b, uint64(millis(w.TTL)))
	}
	if flags&flagFence != 0 {
		b = binary.AppendUvarint(appendText(b, w.Fence.Name), w.Fence.Epoch)
	}
	if flags&flagRequest != 0 {
		b = appendText(b, w.Request)
	}
	if mayFindNothing(w) && w.Request != "" {
		b[4] = versionRemembered
	}
	return finish(append(b, w.Data...))
}

// mayFindNothing says that a write is a deletion which succeeds where there is no value.
func mayFindNothing(w *driver.Write) bool {
	return w.Delete && (w.If == 0 || w.If == driver.Absent)
}

// millis are those of a duration, rounded up: brokers count in them.
func millis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return min(ms, maxMillis)
}

// maxMillis fit into a Duration.
const maxMillis = math.MaxInt64 / int64(time.Millisecond)

func encodeTick(id string) []byte { return finish(seal(kindTick, id)) }

func encodeChunk(id string, c *chunk) []byte {
	b := binary.AppendUvarint(binary.AppendUvarint(seal(kindChunk, id), uint64(c.asOf)), c.index)
	if c.last {
		b = binary.AppendUvarint(append(b, 1), uint64(c.sum))
	} else {
		b = append(b, 0)
	}
	return finish(append(b, c.data...))
}

// fields reads what a record holds. After a field that is not there all are zero, and it is broken.
type fields struct {
	left   []byte
	broken bool
}

func (f *fields) number() uint64 {
	n, size := binary.Uvarint(f.left)
	if size <= 0 {
		f.broken, f.left = true, nil
		return 0
	}
	f.left = f.left[size:]
	return n
}

// within is a number that is at most so large.
func (f *fields) within(most uint64) uint64 {
	n := f.number()
	if n > most {
		f.broken = true
		return 0
	}
	return n
}

func (f *fields) octet() byte {
	if len(f.left) == 0 {
		f.broken = true
		return 0
	}
	b := f.left[0]
	f.left = f.left[1:]
	return b
}

func (f *fields) bytes() []byte {
	n := f.number()
	if n > uint64(len(f.left)) {
		f.broken, f.left = true, nil
		return nil
	}
	b := f.left[:n:n]
	f.left = f.left[n:]
	return b
}

func (f *fields) text() string { return string(f.bytes()) }

// decode reads a record. Its data stays in the memory of the record.
func decode(b []byte) (*command, error) {
	if len(b) < 6 || binary.LittleEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli) {
		return nil, errDamaged
	}
	if b[4] != version && b[4] != versionRemembered {
		return nil, fmt.Errorf("%w: %d", errNewer, b[4])
	}
	f := &fields{left: b[6:]}
	c := &command{version: b[4], id: f.text()}
	switch b[5] {
	case kindWrite:
		c.bucket, c.write = f.write()
	case kindTick:
	case kindChunk:
		c.chunk = f.chunk()
	default:
		return nil, fmt.Errorf("%w: kind %q", errNewer, b[5])
	}
	if f.broken {
		return nil, errDamaged
	}
	return c, nil
}

func (f *fields) write() (bucket string, w *driver.Write) {
	flags := f.within(flagsEnd - 1)
	bucket, w = f.text(), &driver.Write{Name: f.text()}
	w.Delete, w.Quiet = flags&flagDelete != 0, flags&flagQuiet != 0
	if flags&flagAbsent != 0 {
		w.If = driver.Absent
	}
	if flags&flagRevision != 0 {
		w.If = driver.Condition(f.number())
	}
	if flags&flagTTL != 0 {
		w.TTL = time.Duration(f.within(uint64(maxMillis))) * time.Millisecond
	}
	if flags&flagFence != 0 {
		w.Fence = &driver.Fence{Name: f.text(), Epoch: f.number()}
	}
	if flags&flagRequest != 0 {
		w.Request = f.text()
	}
	w.Data = f.left
	f.broken = f.broken || bucket == "" || w.Name == ""
	return bucket, w
}

func (f *fields) chunk() *chunk {
	c := &chunk{asOf: int64(f.within(math.MaxInt64)), index: f.number(), last: f.octet() == 1}
	if c.last {
		c.sum = uint32(f.within(math.MaxUint32))
	}
	c.data = f.left
	return c
}

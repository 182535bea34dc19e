package kafkakv

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kv"
)

// A snapshot is the state before an offset, in chunks that stand in the log behind that offset, among other records. It
// says nothing that the log does not, so that one that comes late, twice or not whole harms nobody. Its data is one
// head and then entries, each whole in one chunk:
//
//	head     epoch + 1 and time (ms) of the newest record
//	b name   what follows is of this bucket
//	v ...    a value
//	q ...    what was applied under a request
const (
	entryBucket = 'b'
	entryValue  = 'v'
	entryAnswer = 'q'
)

// chunkSize is about how large a chunk is; an entry is at most driver.MaxValue and two names.
const chunkSize = 256 << 10

// image is what goes into a snapshot. It shares the data of values.
type image struct {
	asOf    int64
	epoch   int32
	now     time.Time
	buckets []bucketImage
}

type bucketImage struct {
	name    string
	values  []kv.Stored
	answers []kv.Answer
}

// image returns the state as it is.
func (p *replica) image() *image {
	x := &image{asOf: p.next, epoch: p.epoch, now: p.now}
	for name, b := range p.buckets {
		vs, as := b.Export(p.now)
		if len(vs)+len(as) > 0 {
			x.buckets = append(x.buckets, bucketImage{name, vs, as})
		}
	}
	slices.SortFunc(x.buckets, func(a, b bucketImage) int { return compare(a.name, b.name) })
	return x
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// chunks writes an image.
func (x *image) chunks() (cs []*chunk) {
	w := &chunkWriter{asOf: x.asOf}
	w.data = binary.AppendVarint(binary.AppendUvarint(nil, uint64(x.epoch+1)), milli(x.now))
	for _, b := range x.buckets {
		w.add(appendText([]byte{entryBucket}, b.name))
		for _, v := range b.values {
			w.add(appendValue([]byte{entryValue}, v))
		}
		for _, a := range b.answers {
			w.add(appendAnswer([]byte{entryAnswer}, a))
		}
	}
	w.cut(true)
	return w.done
}

// chunkWriter divides entries into chunks.
type chunkWriter struct {
	asOf int64
	data []byte
	sum  uint32
	done []*chunk
}

func (w *chunkWriter) add(entry []byte) {
	if len(w.data) > 0 && len(w.data)+len(entry) > chunkSize {
		w.cut(false)
	}
	w.data = append(w.data, entry...)
}

func (w *chunkWriter) cut(last bool) {
	w.sum = crc32.Update(w.sum, castagnoli, w.data)
	c := &chunk{asOf: w.asOf, index: uint64(len(w.done)), last: last, data: w.data}
	if last {
		c.sum = w.sum
	}
	w.done, w.data = append(w.done, c), nil
}

func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func appendValue(b []byte, v kv.Stored) []byte {
	b = appendText(b, v.Name)
	b = binary.AppendUvarint(binary.AppendUvarint(b, v.Revision), v.Epoch)
	b = binary.AppendVarint(b, milli(v.Written))
	b = binary.AppendUvarint(b, uint64(v.TTL.Milliseconds()))
	if v.TTL > 0 {
		b = binary.AppendVarint(b, milli(v.Since))
	}
	return appendText(b, string(v.Data))
}

func appendAnswer(b []byte, a kv.Answer) []byte {
	b = appendText(appendText(b, a.Request), a.Value.Name)
	b = binary.AppendUvarint(binary.AppendUvarint(b, a.Value.Revision), a.Value.Epoch)
	b = binary.AppendVarint(b, milli(a.Value.Written))
	b = binary.AppendUvarint(b, uint64(max(0, a.Value.Left.Milliseconds())))
	return binary.AppendVarint(b, milli(a.Since))
}

// time reads one in milliseconds; zero is none.
func (f *fields) time() time.Time {
	n, size := binary.Varint(f.left)
	if size <= 0 {
		f.broken, f.left = true, nil
		return time.Time{}
	}
	f.left = f.left[size:]
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

func (f *fields) span() time.Duration {
	return time.Duration(f.within(uint64(maxMillis))) * time.Millisecond
}

func (f *fields) stored() kv.Stored {
	v := kv.Stored{Name: f.text(), Revision: f.number(), Epoch: f.number(), Written: f.time(), TTL: f.span()}
	if v.TTL > 0 {
		v.Since = f.time()
	}
	v.Data = append([]byte(nil), f.bytes()...)
	return v
}

func (f *fields) answer() kv.Answer {
	a := kv.Answer{Request: f.text()}
	a.Value = driver.Value{Name: f.text(), Revision: f.number(), Epoch: f.number(), Written: f.time(), Left: f.span()}
	a.Since = f.time()
	return a
}

// load makes the state that a snapshot describes. Not ok: it is damaged.
func (p *replica) load(asOf int64, chunks [][]byte) bool {
	f := &fields{left: chunks[0]}
	epoch, now := int32(f.within(math.MaxInt32))-1, f.time()
	base := revision(epoch, asOf-1)
	buckets := map[string]*kv.Bucket{}
	var b *kv.Bucket
	for i := range chunks {
		if i > 0 {
			f.left = chunks[i]
		}
		for len(f.left) > 0 && !f.broken {
			switch kind := f.octet(); {
			case kind == entryBucket:
				name := f.text()
				b = kv.NewBucket(name, base)
				buckets[name] = b
			case kind == entryValue && b != nil:
				b.Import(f.stored())
			case kind == entryAnswer && b != nil:
				b.ImportAnswer(f.answer())
			default:
				f.broken = true
			}
		}
	}
	if f.broken {
		return false
	}
	p.epoch, p.now, p.base, p.buckets = epoch, now, base, buckets
	return true
}

// snapshots are those that are being read.
type snapshots struct{ open []*partial }

// partial is a snapshot of which the first chunks are there.
type partial struct {
	id   string
	asOf int64
	next uint64
	sum  uint32
	size int
	data [][]byte // while the replica needs it
}

// openMost bounds how many snapshots are read at the same time: of those that nobody ended, the oldest is forgotten.
const openMost = 8

// add takes a chunk, and returns its snapshot when that is whole.
func (s *snapshots) add(id string, c *chunk, keep bool) *partial {
	at := slices.IndexFunc(s.open, func(x *partial) bool { return x.id == id })
	if at < 0 {
		if c.index != 0 {
			return nil
		}
		if len(s.open) >= openMost {
			s.open = slices.Delete(s.open, 0, 1)
		}
		at = len(s.open)
		s.open = append(s.open, &partial{id: id, asOf: c.asOf})
	}
	x := s.open[at]
	x.sum, x.size = crc32.Update(x.sum, castagnoli, c.data), x.size+len(c.data)
	if keep {
		x.data = append(x.data, c.data)
	}
	wrong := c.index != x.next || c.asOf != x.asOf || c.last && c.sum != x.sum
	x.next++
	if !wrong && !c.last {
		return nil
	}
	s.open = slices.Delete(s.open, at, at+1)
	if wrong {
		return nil
	}
	return x
}

// collect takes a chunk. A complete snapshot is where a replica begins that is not known yet, and what tells others how
// much of the log is needed.
func (p *replica) collect(c *command) {
	x := p.snaps.add(c.id, c.chunk, !p.known)
	if x == nil || x.asOf < p.from || x.asOf > p.next {
		return
	}
	if !p.known {
		if !p.load(x.asOf, x.data) {
			return
		}
		p.begin(x.asOf)
	}
	if x.asOf > p.asOf {
		p.asOf, p.before, p.weight = x.asOf, p.asOf, 0
	}
	p.observed(outcome{id: c.id, snapshot: true, size: x.size})
}

// begin goes on from a snapshot with what was read since the offset that it is of.
func (p *replica) begin(asOf int64) {
	held := p.held
	p.known, p.held = true, nil
	for _, x := range p.snaps.open {
		x.data = nil
	}
	for _, r := range held {
		if r.Offset >= asOf {
			c, _ := decode(r.Value) // a damaged one is counted already
			p.apply(r, c)
		}
	}
}

// chunkRecords are those of a snapshot.
func chunkRecords(id, topic string, partition int32, cs []*chunk) (rs []*kgo.Record, size int) {
	for _, c := range cs {
		r := &kgo.Record{Topic: topic, Partition: partition, Value: encodeChunk(id, c)}
		rs, size = append(rs, r), size+len(r.Value)
	}
	return rs, size
}

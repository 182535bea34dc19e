package frame

import (
	"encoding/binary"
	"io"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
	"google.golang.org/protobuf/encoding/protowire"
)

// Walk goes over the fields of a value in one order, and appends each to a frame, sets it from one, or only measures
// it. After the first error it does nothing more.
type Walk struct {
	data []byte // what was written and is not sent, or what has arrived and is left to read
	mode mode
	size int       // what was measured
	out  io.Writer // where data goes when there is enough of it; nil: it is all kept
	in   io.Reader // where the rest comes from, as far as it is needed
	rest int       // bytes that have not arrived
	room int       // for how many there is memory before they have
	left int       // elements of the list that is walked
	same string    // the last text that was read by repeated
	err  error

	messages   envelope.Decoder
	deliveries []driver.Delivery // room for those that are read
}

// mode is what is done with a field.
type mode uint8

const (
	writing mode = iota
	reading
	measuring
)

// Reading reports whether fields are set.
func (w *Walk) Reading() bool { return w.mode == reading }

// fail keeps the first error, and reads nothing after it.
func (w *Walk) fail(err error) {
	if w.err == nil {
		w.err, w.data, w.rest = err, nil, 0
	}
}

// coming is how many bytes are left to read, those included that have not arrived.
func (w *Walk) coming() int { return len(w.data) + w.rest }

// arrive waits until so many bytes have arrived, or all that are coming.
func (w *Walk) arrive(n int) {
	for len(w.data) < n && w.rest > 0 {
		if len(w.data) == cap(w.data) {
			w.data = append(make([]byte, 0, w.growth(n)), w.data...)
		}
		got, err := w.in.Read(w.data[len(w.data):cap(w.data)])
		w.data, w.rest = w.data[:len(w.data)+got], w.rest-got
		if err != nil && w.rest > 0 {
			w.fail(cut(err))
		}
	}
}

// growth is how much memory comes next, if n bytes are needed at once: a chunk, of which what was read before keeps no
// part, and more as more arrives.
func (w *Walk) growth(n int) int {
	const growth = 4
	return min(max(chunk, min(n, max(w.room, growth*len(w.data)))), w.coming())
}

// send sends what was written, once there is enough of it.
func (w *Walk) send(least int) {
	if w.out == nil || len(w.data) < least {
		return
	}
	if _, err := w.out.Write(w.data); err != nil {
		w.fail(err)
		return
	}
	w.data = w.data[:0]
}

func (w *Walk) uint(n *uint64) {
	switch w.mode {
	case measuring:
		w.size += protowire.SizeVarint(*n)
		return
	case writing:
		w.data = binary.AppendUvarint(w.data, *n)
		return
	}
	w.arrive(binary.MaxVarintLen64)
	v, size := binary.Uvarint(w.data)
	if size <= 0 {
		w.fail(damaged("a number is cut off or too large"))
		return
	}
	*n, w.data = v, w.data[size:]
}

// number walks a signed number, and refuses one that its type cannot hold.
func number[N ~int | ~int8 | ~int32 | ~int64](w *Walk, n *N) {
	zigzag := uint64(*n)<<1 ^ uint64(int64(*n)>>63)
	w.uint(&zigzag)
	if w.mode != reading || w.err != nil {
		return
	}
	v := int64(zigzag>>1) ^ -int64(zigzag&1)
	if int64(N(v)) != v {
		w.fail(damaged("a number is out of range"))
		return
	}
	*n = N(v)
}

// count walks an unsigned number, and refuses one that its type cannot hold.
func count[N ~uint8 | ~uint16 | ~uint64](w *Walk, n *N) {
	v := uint64(*n)
	w.uint(&v)
	if w.mode != reading || w.err != nil {
		return
	}
	if uint64(N(v)) != v {
		w.fail(damaged("a number is out of range"))
		return
	}
	*n = N(v)
}

func (w *Walk) flag(b *bool) {
	var n uint8
	if *b {
		n = 1
	}
	if count(w, &n); n > 1 {
		w.fail(damaged("a flag is neither 0 nor 1"))
	}
	if w.mode == reading {
		*b = n == 1
	}
}

func (w *Walk) bytes(b *[]byte) {
	size := uint64(len(*b))
	w.uint(&size)
	switch w.mode {
	case measuring:
		w.size += len(*b)
		return
	case writing:
		w.data = append(w.data, *b...)
		return
	}
	if *b = nil; size > uint64(w.coming()) {
		w.fail(damaged("a text is cut off"))
		return
	}
	if w.arrive(int(size)); w.err != nil || size == 0 {
		return
	}
	*b, w.data = w.data[:size:size], w.data[size:] // so that appending to it does not write into the frame
}

func text[S ~string](w *Walk, s *S) {
	if w.mode == reading {
		var b []byte
		w.bytes(&b)
		*s = S(b)
		return
	}
	size := uint64(len(*s))
	if w.uint(&size); w.mode == measuring {
		w.size += len(*s)
		return
	}
	w.data = append(w.data, *s...)
}

// repeated walks a text that is mostly that of the value before: reading it again takes no memory.
func (w *Walk) repeated(s *string) {
	if w.mode != reading {
		text(w, s)
		return
	}
	var b []byte
	if w.bytes(&b); string(b) != w.same {
		w.same = string(b)
	}
	*s = w.same
}

// moment walks a time, in UTC. A schedule may name any year, so that nanoseconds since 1970 would not do.
func (w *Walk) moment(t *time.Time) {
	set := !t.IsZero()
	if w.flag(&set); !set {
		clearRead(w, t)
		return
	}
	seconds, nanos := t.Unix(), int64(t.Nanosecond())
	number(w, &seconds)
	number(w, &nanos)
	if w.mode == reading {
		*t = time.Unix(seconds, nanos).UTC()
	}
}

// clearRead clears what is read. What is written may belong to others, who read it meanwhile.
func clearRead[T any](w *Walk, v *T) {
	if w.mode == reading {
		*v = *new(T)
	}
}

// firstRoom is for how many elements a list that is read has room before any has been: as many as a worker asks for.
const firstRoom = 1024

// list walks a slice. It grows as elements are read: each takes a byte at least, so that no count can ask for memory.
func list[T any](w *Walk, s *[]T, each func(w *Walk, v *T)) {
	n := uint64(len(*s))
	if w.uint(&n); w.mode != reading {
		for i := 0; i < len(*s) && w.err == nil; i++ {
			each(w, &(*s)[i])
			w.send(piece)
		}
		return
	}
	*s = nil
	if n > uint64(w.coming()) {
		w.fail(damaged("a list is cut off"))
		return
	}
	if n > 0 {
		*s = make([]T, 0, min(n, firstRoom))
	}
	for ; n > 0 && w.err == nil; n-- {
		w.left = int(n)
		*s = append(*s, *new(T))
		each(w, &(*s)[len(*s)-1]) // in its place: a variable would be on the heap, one for each element
	}
}

// optional walks what a pointer points to, if it does.
func optional[T any](w *Walk, p **T, each func(w *Walk, v *T)) {
	set := *p != nil
	if w.flag(&set); !set {
		clearRead(w, p)
		return
	}
	if w.mode == reading {
		*p = new(T)
	}
	each(w, *p)
}

// message walks a message, which may be nil, as an envelope.
func message(w *Walk, m **driver.Message) {
	switch {
	case w.mode == reading:
		readMessage(w, m)
	case *m == nil:
		w.uint(new(uint64))
	case w.mode == measuring:
		w.measured(envelope.Size(*m))
	default:
		w.sized(len((*m).Body)+headSize, func(dst []byte) []byte { return envelope.Append(dst, *m) })
	}
}

func readMessage(w *Walk, m **driver.Message) {
	*m = nil
	var data []byte
	if w.bytes(&data); len(data) == 0 {
		return
	}
	w.messages.Coming = w.left
	got, err := w.messages.Decode(data)
	if err != nil {
		w.fail(err)
		return
	}
	*m = got
}

// letter walks a dead letter, which may be nil.
func letter(w *Walk, dl **driver.DeadLetter) {
	switch {
	case w.mode == reading:
		readLetter(w, dl)
	case *dl == nil:
		w.uint(new(uint64))
	case w.mode == measuring:
		w.data = envelope.AppendDeadLetter(w.data[:0], *dl) // they are few
		w.measured(len(w.data))
	default:
		w.sized(headSize, func(dst []byte) []byte { return envelope.AppendDeadLetter(dst, *dl) })
	}
}

func readLetter(w *Walk, dl **driver.DeadLetter) {
	*dl = nil
	var data []byte
	if w.bytes(&data); len(data) == 0 {
		return
	}
	got, err := envelope.DecodeDeadLetter(data)
	if err != nil {
		w.fail(err)
		return
	}
	*dl = got
}

// deliveryRoom is how many deliveries share a piece of memory. Much larger ones are slow, and one that is kept would
// keep more.
const deliveryRoom = 64

// delivered makes room for a delivery that is read.
func (w *Walk) delivered(d **driver.Delivery) {
	if w.mode != reading {
		return
	}
	if len(w.deliveries) == 0 {
		w.deliveries = make([]driver.Delivery, max(1, min(w.left, deliveryRoom)))
	}
	*d, w.deliveries = &w.deliveries[0], w.deliveries[1:]
}

// measured counts what has this size, and stands behind it.
func (w *Walk) measured(size int) { w.size += protowire.SizeBytes(size) }

// headSize is about how many bytes an envelope has beside the body.
const headSize = 80

// sized writes what write appends, with its size before it. The size is known afterwards: there is room for as many
// digits as what it is about has, and what was written is moved only where it has others.
func (w *Walk) sized(about int, write func(dst []byte) []byte) {
	var size [binary.MaxVarintLen64]byte
	begin, room := len(w.data), binary.PutUvarint(size[:], uint64(about))
	w.data = write(append(w.data, size[:room]...))
	n := binary.PutUvarint(size[:], uint64(len(w.data)-begin-room))
	if n != room {
		w.data = slices.Replace(w.data, begin, begin+room, size[:n]...)
		return
	}
	copy(w.data[begin:], size[:n])
}

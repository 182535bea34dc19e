package frame

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

// Walk goes over the fields of a value in one order, and either appends each to a frame or sets it from one. After the first
// error it does nothing more.
type Walk struct {
	data    []byte // what was written, or what is left to read
	reading bool
	same    string // the last text that was read by repeated
	err     error
}

// Reading reports whether fields are set.
func (w *Walk) Reading() bool { return w.reading }

// fail keeps the first error, and reads nothing after it.
func (w *Walk) fail(err error) {
	if w.err == nil {
		w.err, w.data = err, nil
	}
}

func (w *Walk) uint(n *uint64) {
	if !w.reading {
		w.data = binary.AppendUvarint(w.data, *n)
		return
	}
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
	if !w.reading || w.err != nil {
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
	if !w.reading || w.err != nil {
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
	*b = n == 1
}

func (w *Walk) bytes(b *[]byte) {
	size := uint64(len(*b))
	w.uint(&size)
	if !w.reading {
		w.data = append(w.data, *b...)
		return
	}
	if *b = nil; size > uint64(len(w.data)) {
		w.fail(damaged("a text is cut off"))
		return
	}
	if size > 0 {
		*b = w.data[:size:size] // so that appending to it does not write into the frame
	}
	w.data = w.data[size:]
}

func text[S ~string](w *Walk, s *S) {
	if !w.reading {
		size := uint64(len(*s))
		w.uint(&size)
		w.data = append(w.data, *s...)
		return
	}
	var b []byte
	w.bytes(&b)
	*s = S(b)
}

// repeated walks a text that is mostly that of the value before: reading it again takes no memory.
func (w *Walk) repeated(s *string) {
	if !w.reading {
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
		*t = time.Time{}
		return
	}
	seconds, nanos := t.Unix(), int64(t.Nanosecond())
	number(w, &seconds)
	number(w, &nanos)
	if w.reading {
		*t = time.Unix(seconds, nanos).UTC()
	}
}

// firstRoom is for how many elements a list that is read has room before any has been: as many as a worker asks for.
const firstRoom = 1024

// list walks a slice. It grows as elements are read: each takes a byte at least, so that no count can ask for memory.
func list[T any](w *Walk, s *[]T, each func(w *Walk, v *T)) {
	n := uint64(len(*s))
	w.uint(&n)
	if !w.reading {
		for i := range *s {
			each(w, &(*s)[i])
		}
		return
	}
	*s = nil
	if n > uint64(len(w.data)) {
		w.fail(damaged("a list is cut off"))
		return
	}
	if n > 0 {
		*s = make([]T, 0, min(n, firstRoom))
	}
	for ; n > 0 && w.err == nil; n-- {
		*s = append(*s, *new(T))
		each(w, &(*s)[len(*s)-1]) // in its place: a variable would be on the heap, one for each element
	}
}

// optional walks what a pointer points to, if it does.
func optional[T any](w *Walk, p **T, each func(w *Walk, v *T)) {
	set := *p != nil
	if w.flag(&set); !set {
		*p = nil
		return
	}
	if w.reading {
		*p = new(T)
	}
	each(w, *p)
}

// message walks a message, which may be nil, as an envelope.
func message(w *Walk, m **driver.Message) {
	if !w.reading {
		about := 0
		if *m != nil {
			about = len((*m).Body) + headSize
		}
		w.sized(about, func(dst []byte) []byte { return envelope.Append(dst, *m) })
		return
	}
	var data []byte
	if w.bytes(&data); len(data) == 0 {
		*m = nil
		return
	}
	got, err := envelope.Decode(data)
	if err != nil {
		w.fail(err)
		return
	}
	*m = got
}

// letter walks a dead letter, which may be nil.
func letter(w *Walk, dl **driver.DeadLetter) {
	if !w.reading {
		about := 0
		if *dl != nil {
			about = headSize
		}
		w.sized(about, func(dst []byte) []byte { return envelope.AppendDeadLetter(dst, *dl) })
		return
	}
	var data []byte
	if w.bytes(&data); len(data) == 0 {
		*dl = nil
		return
	}
	got, err := envelope.DecodeDeadLetter(data)
	if err != nil {
		w.fail(err)
		return
	}
	*dl = got
}

// headSize is about how many bytes an envelope has beside the body.
const headSize = 80

// sized writes what write appends, with its size before it, or a size of 0 if it is about 0. The size is known afterwards: there is room for
// as many digits as what it is about has, and what was written is moved only where it has others.
func (w *Walk) sized(about int, write func(dst []byte) []byte) {
	var size [binary.MaxVarintLen64]byte
	begin, room := len(w.data), binary.PutUvarint(size[:], uint64(about))
	w.data = append(w.data, size[:room]...)
	if about == 0 {
		return
	}
	w.data = write(w.data)
	n := binary.PutUvarint(size[:], uint64(len(w.data)-begin-room))
	if n != room {
		w.data = slices.Replace(w.data, begin, begin+room, size[:n]...)
		return
	}
	copy(w.data[begin:], size[:n])
}

package frame

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/ferrymq/ferry/driver"
)

// writes are the sizes of what was written at once.
type writes []int

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, len(p))
	return len(p), nil
}

// many is an answer of several pieces.
func many() *Deliveries {
	x := new(Deliveries)
	for i := range uint64(1000) {
		m := &driver.Message{ID: fmt.Sprint(i), Topic: "jobs", Body: bytes.Repeat([]byte("x"), 1024)}
		x.Deliveries = append(x.Deliveries, Delivery{Delivery: &driver.Delivery{Message: m, Group: "default", Attempt: 1},
			Handle: i})
	}
	return x
}

// A frame that is written in pieces is the frame, and none of the pieces is much larger than it needs to be.
func TestFramesAreWrittenInPieces(t *testing.T) {
	t.Parallel()
	var whole bytes.Buffer
	var parts writes
	v := many()
	if err := Write(io.MultiWriter(&whole, &parts), v, Size(v)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(whole.Bytes(), marshal(t, v)) {
		t.Error("the pieces are not the frame")
	}
	if most := slices.Max(parts); most > piece+2048 || len(parts) < 5 {
		t.Errorf("%d pieces, and the largest has %d bytes", len(parts), most)
	}
	broken := errors.New("broken")
	if err := Write(failing{broken}, v, Size(v)); !errors.Is(err, broken) {
		t.Errorf("a writer that fails: got %v, want its error", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A frame is read while it arrives, however it does: what has come is walked before the rest is there.
func TestFramesAreReadWhileTheyArrive(t *testing.T) {
	t.Parallel()
	data := marshal(t, many())
	for name, slow := range map[string]func(io.Reader) io.Reader{
		"byte by byte": iotest.OneByteReader, "half of what is asked for": iotest.HalfReader,
		"with the end": iotest.DataErrReader,
	} {
		got := new(Deliveries)
		if err := Read(slow(bytes.NewReader(data)), Bounds{Most: len(data), Room: len(data)}, got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(marshal(t, got), data) {
			t.Errorf("%s: what was read is not what was sent", name)
		}
	}
	r, w := io.Pipe()
	seen := make(chan struct{})
	go func() {
		_, _ = w.Write(data[:len(data)-1])
		<-seen // which would wait forever for what is not sent
		_, _ = w.Write(data[len(data)-1:])
	}()
	x := &noticing{Deliveries: new(Deliveries), seen: seen}
	if err := Read(r, Bounds{Most: len(data), Room: len(data)}, x); err != nil {
		t.Fatal(err)
	}
}

// noticing says when half of a list has been read.
type noticing struct {
	*Deliveries
	seen chan struct{}
}

func (x *noticing) Walk(w *Walk) {
	number(w, &x.Served)
	n := 0
	list(w, &x.Deliveries.Deliveries, func(w *Walk, d *Delivery) {
		if n++; n == 500 {
			close(x.seen)
		}
		delivery(w, d)
	})
}

// What is cut off is refused when it is read while it arrives, too.
func TestArrivingFramesThatAreCutOffAreRefused(t *testing.T) {
	t.Parallel()
	v := many()
	v.Deliveries = v.Deliveries[:3]
	data := marshal(t, v)
	for n := range len(data) {
		if err := Read(iotest.HalfReader(bytes.NewReader(data[:n])), Bounds{Most: len(data)},
			new(Deliveries)); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%d of %d bytes: got %v, want ErrInvalid", n, len(data), err)
		}
	}
}

// Writing changes nothing of a value: others may read it meanwhile.
func TestWritingChangesNothing(t *testing.T) {
	t.Parallel()
	for _, v := range append(values(), many()) {
		running := make(chan struct{})
		go func() {
			defer close(running)
			_ = Size(v)
			_, _ = Marshal(v)
		}()
		_ = Write(io.Discard, v, Size(v)) // the race detector looks
		<-running
	}
}

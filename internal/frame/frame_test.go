package frame

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ferrymq/ferry/driver"
)

// values returns a new one of every call and answer.
func values() []Value {
	return []Value{
		new(Welcome), new(Publish), new(Receipts), new(Errors), new(Subscribe), new(Session), new(Receive), new(Deliveries),
		new(Held),
		new(Settle), new(Revoked), new(Place), new(Config), new(Group), new(Reset), new(Number), new(Target), new(Targets),
		new(Moves),
		new(Query), new(Page), new(TopicNames), new(Topics), new(Stats), new(Entries), new(Usage), new(Findings),
		new(AuditReport), new(ResetReport),
		new(Names), new(KVQuery), new(Writes), new(WriteResults), new(Watch), new(Values), new(Replay), new(Retain),
		new(Partitions),
		new(PendingQuery), new(PendingPage), new(RangeQuery), new(RangePage), new(Retention), new(TrimReport),
	}
}

// Every field of every call and answer arrives. Each is set to something, so that one that is forgotten is seen.
func TestEveryFieldArrives(t *testing.T) {
	for _, v := range values() {
		t.Run(reflect.TypeOf(v).Elem().Name(), func(t *testing.T) {
			fill(rand.New(rand.NewPCG(1, 2)), reflect.ValueOf(v).Elem())
			data := marshal(t, v)
			got := reflect.New(reflect.TypeOf(v).Elem()).Interface().(Value)
			if err := Read(bytes.NewReader(data), Bounds{Most: len(data)}, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(v, got, asErrors(), unsent()); diff != "" {
				t.Errorf("(-sent +got):\n%s", diff)
			}
		})
	}
}

// fill sets everything below v to something that is not zero. Errors get one of their kinds.
func fill(r *rand.Rand, v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(1<<32), r.Int64N(1e9)).UTC()))
		return
	case *driver.Message:
		v.Set(reflect.ValueOf(&driver.Message{ID: fmt.Sprint(r.Uint64()), Topic: "jobs", Body: []byte("body"),
			Priority: driver.High}))
		return
	case *driver.DeadLetter:
		v.Set(reflect.ValueOf(&driver.DeadLetter{Message: &driver.Message{ID: "a", Topic: "jobs"}, Reason: driver.ReasonFatal,
			Rounds: 3}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[error]() {
			v.Set(reflect.ValueOf(driver.NewError(kinds[r.IntN(len(kinds))], "what", "hint", io.EOF)))
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("text\x00\xff%d", r.Uint64()))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int32, reflect.Int64:
		v.SetInt(-1 - r.Int64N(127))
	case reflect.Uint8, reflect.Uint16, reflect.Uint64:
		v.SetUint(1 + r.Uint64N(255))
	}
}

// asErrors compares errors by what they say.
func asErrors() cmp.Option {
	return cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error()) })
}

// unsent are fields that others stand for: a handle for a delivery and its token, and what is called here and not
// there.
func unsent() cmp.Option {
	return cmp.Options{
		cmpopts.IgnoreFields(driver.SubscribeOptions{}, "Revoking"),
		cmpopts.IgnoreFields(driver.Settlement{}, "Delivery"),
		cmpopts.IgnoreFields(driver.Delivery{}, "Token", "LeaseUntil"),
	}
}

func marshal(t testing.TB, v Value) []byte {
	t.Helper()
	data, err := Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if size := Size(v); size != len(data) {
		t.Fatalf("Size says %d, but it has %d bytes", size, len(data))
	}
	return data
}

// An error is of the same kinds on both sides, and says the same.
func TestErrorsArriveAsTheyAre(t *testing.T) {
	both := driver.NewError(driver.ErrClosed, "the driver is closed", "open it", driver.ErrLeaseLost)
	cases := []error{io.EOF, fmt.Errorf("outside: %w", driver.ErrFull), both,
		errors.Join(driver.ErrInvalid, driver.ErrTooLarge)}
	for _, kind := range kinds {
		cases = append(cases, driver.NewError(kind, "text", "hint", nil),
			driver.NewError(kind, "text", "hint", io.ErrUnexpectedEOF), kind)
	}
	for _, err := range cases {
		var got Err
		if e := Read(bytes.NewReader(marshal(t, &Err{err})), Bounds{Most: 1 << 10}, &got); e != nil {
			t.Fatal(e)
		}
		if got.Err.Error() != err.Error() {
			t.Errorf("got %q, want %q", got.Err, err)
		}
		for _, kind := range kinds {
			if errors.Is(got.Err, kind) != errors.Is(err, kind) {
				t.Errorf("%v is a %v on one side only", err, kind)
			}
		}
	}
}

// What is cut off anywhere, has another version, or is too large is refused, and never read as something else.
func TestDamagedFramesAreRefused(t *testing.T) {
	v := &Publish{Messages: []*driver.Message{{ID: "a", Topic: "jobs", Body: []byte("body")}}}
	data := marshal(t, v)
	for n := range len(data) {
		if err := Read(bytes.NewReader(data[:n]), Bounds{Most: len(data)}, new(Publish)); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%d of %d bytes: got %v, want ErrInvalid", n, len(data), err)
		}
	}
	other := bytes.Clone(data)
	other[0] = Version + 1
	if err := Read(bytes.NewReader(other), Bounds{Most: len(data)}, new(Publish)); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("another version: got %v, want ErrInvalid", err)
	}
	if err := Read(bytes.NewReader(data), Bounds{Most: 4}, new(Publish)); !errors.Is(err, driver.ErrTooLarge) {
		t.Errorf("over the limit: got %v, want ErrTooLarge", err)
	}
	if err := Unmarshal(append(bytes.Clone(data[headerSize:]), 0), new(Publish)); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("with a byte behind its end: got %v, want ErrInvalid", err)
	}
}

// A frame that announces more than it sends takes no memory for what does not come.
func TestAnnouncedBytesAreNotTrusted(t *testing.T) {
	header := []byte{Version, 0xff, 0xff, 0xff, 0xff}
	allocated := testing.AllocsPerRun(1, func() {
		if err := Read(bytes.NewReader(header), Bounds{Most: 1 << 32}, new(Publish)); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("got %v, want ErrInvalid", err)
		}
	})
	if allocated > 20 {
		t.Errorf("%v allocations", allocated)
	}
	if err := Read(iotest.ErrReader(io.ErrClosedPipe), Bounds{Most: 10}, new(Publish)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a reader that fails: got %v, want its error", err)
	}
}

// FuzzRead reads anything as every call and answer: it fails or gives a value that is written and read alike.
func FuzzRead(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for i, v := range values() {
		fill(r, reflect.ValueOf(v).Elem())
		data, err := Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), data[headerSize:])
	}
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		all := values()
		v := all[int(which)%len(all)]
		if Unmarshal(bytes.Clone(data), v) != nil {
			return
		}
		again := values()[int(which)%len(all)]
		first := marshal(t, v)
		if err := Unmarshal(first[headerSize:], again); err != nil {
			t.Fatalf("what was read cannot be written and read again: %v", err)
		}
		if second := marshal(t, again); !bytes.Equal(first, second) {
			t.Fatalf("written as %x, and then as %x", first, second)
		}
	})
}

// The size of a message stands before it in as few bytes as it takes, whichever they are: around the sizes at which it
// takes one more.
func TestMessagesOfEverySizeArrive(t *testing.T) {
	t.Parallel()
	for _, around := range []int{0, 1 << 7, 1 << 14} {
		for n := max(around-2*headSize, 0); n < around+headSize; n++ {
			v := &Publish{Messages: []*driver.Message{{ID: "a", Topic: "jobs", Body: bytes.Repeat([]byte("x"), n)}, nil,
				{ID: "b", Topic: "jobs"}}}
			got := new(Publish)
			if err := Unmarshal(marshal(t, v)[headerSize:], got); err != nil {
				t.Fatalf("a body of %d bytes: %v", n, err)
			}
			if len(got.Messages) != 3 || !bytes.Equal(got.Messages[0].Body, v.Messages[0].Body) || got.Messages[1] != nil ||
				got.Messages[2].ID != "b" {
				t.Fatalf("a body of %d bytes: got %v", n, got.Messages)
			}
		}
	}
}

// A list is read into one piece of memory, and not into one for each element.
func TestListsAreReadInPlace(t *testing.T) {
	data := marshal(t, &Settle{Session: "a", Handles: make([]uint64, firstRoom),
		Settlements: make([]driver.Settlement, firstRoom)})[headerSize:]
	allocated := testing.AllocsPerRun(10, func() {
		if err := Unmarshal(data, new(Settle)); err != nil {
			t.Error(err)
		}
	})
	if allocated > 20 {
		t.Errorf("%v allocations for %d elements", allocated, firstRoom)
	}
}

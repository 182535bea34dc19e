package envelope

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver"
	"pgregory.net/rapid"
)

func TestDeadLetterRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genDeadLetter.Draw(t, "dead letter")
		data := AppendDeadLetter(nil, want)
		got, err := DecodeDeadLetter(data)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, want)
		if again := AppendDeadLetter([]byte("x"), want); !bytes.Equal(again[1:], data) {
			t.Fatalf("equal dead letters, different bytes:\n%x\n%x", data, again)
		}
	})
}

func TestHistoryRoundTripAndJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOf(genFailure).Draw(t, "a")
		b := rapid.SliceOf(genFailure).Draw(t, "b")
		joined := append(AppendHistory(nil, a...), AppendHistory(nil, b...)...)
		got, err := DecodeHistory(joined)
		if err != nil {
			t.Fatal(err)
		}
		clear(joined)
		want := append(append([]driver.Failure(nil), a...), b...)
		same(t, got, want[max(0, len(want)-driver.HistoryLimit):])
	})
}

// What lies in the dead letters is the envelope that was stored, so that a driver may put it there as it is.
func TestDeadLetterHoldsTheEnvelope(t *testing.T) {
	t.Parallel()
	dl := dead()
	if !bytes.Contains(AppendDeadLetter(nil, dl), Append(nil, dl.Message)) {
		t.Error("the dead letter does not contain the envelope of its message")
	}
}

func TestDecodeDeadLetterRefuses(t *testing.T) {
	t.Parallel()
	inner := Append(nil, plain())
	inner[len(inner)-1] ^= 1
	for _, c := range []struct {
		name, says string
		data       []byte
	}{
		{"an envelope", "", Append(nil, plain())},
		{"a damaged message inside", "checksum", sealed(appendText(nil, numMessage, inner))},
		{"a newer version", "version 9", appendUint(nil, numVersion, 9)},
		{"a partition beyond 32 bits", "partition", sealed(nest(appendInt(nil, numOriginPartition, 1<<31), 0, numOrigin))},
		{"a failure cut off", "field error is cut off", sealed(nest([]byte{numFailureError<<3 | 2, 1}, 0, numHistory))},
		{"a wrong type", "field rounds has the wrong type", sealed(appendText(nil, numRounds, "x"))},
	} {
		dl, err := DecodeDeadLetter(c.data)
		if dl != nil || !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, %v; want ErrInvalid that says %q", c.name, dl, err, c.says)
		}
	}
	if h, err := DecodeHistory([]byte{numFailures<<3 | 2, 5}); h != nil || !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("a history cut off: got %v, %v; want ErrInvalid", h, err)
	}
}

func TestDeadLetterFindsEveryFlippedBit(t *testing.T) {
	t.Parallel()
	data := AppendDeadLetter(nil, dead())
	for i := range len(data) * 8 {
		data[i/8] ^= 1 << (i % 8)
		if dl, err := DecodeDeadLetter(data); err == nil {
			t.Fatalf("bit %d of byte %d flipped: decoded as %+v", i%8, i/8, dl)
		}
		data[i/8] ^= 1 << (i % 8)
	}
}

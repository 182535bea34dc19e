package envelope

import (
	"testing"

	"github.com/ferrymq/ferry/driver"
	"pgregory.net/rapid"
)

// A decoder gives what Decode gives, whatever it has decoded before and however many were expected.
func TestDecoderOfMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Decoder{Coming: rapid.IntRange(-1, 2*decoderRoom).Draw(t, "coming")}
		var got []*driver.Message
		want := rapid.SliceOfN(genMessage, 0, 8).Draw(t, "messages")
		for _, m := range want {
			one, err := d.Decode(Append(nil, m))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, one)
		}
		for i, m := range want {
			same(t, got[i], m)
		}
	})
}

// Messages of one topic that come together take less than two pieces of memory each: the id, and a part of the others.
func TestDecoderSharesMemory(t *testing.T) {
	const n = 2 * decoderRoom
	data := Append(nil, plain())
	allocated := testing.AllocsPerRun(10, func() {
		d := Decoder{Coming: n}
		for range n {
			if _, err := d.Decode(data); err != nil {
				t.Error(err)
			}
		}
	})
	if allocated > n+8 {
		t.Errorf("%v allocations for %d messages", allocated, n)
	}
}

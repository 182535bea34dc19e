package envelope

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver"
	"pgregory.net/rapid"
)

// unpack reads pairs as a consumer of this form does: a record of Kafka brings key and body beside its headers.
func unpack(f Form, pairs []Pair, key string, body []byte) (*driver.Message, error) {
	m := new(driver.Message)
	if f == Kafka {
		m.Key, m.Body = key, body
	}
	if err := FromFields(f, pairs, m); err != nil {
		return nil, err
	}
	return m, nil
}

func TestFieldsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom([]Form{Stream, Kafka}).Draw(t, "form")
		want := genMessage.Draw(t, "message")
		before := make([]Pair, 1, 4)
		pairs := ToFields(f, before, want)[1:]
		got, err := unpack(f, pairs, want.Key, want.Body)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, want)
		same(t, pairs, ToFields(f, nil, want.Clone()))
	})
}

func TestFieldsFindEveryFlippedBit(t *testing.T) {
	t.Parallel()
	for _, f := range []Form{Stream, Kafka} {
		m := full()
		pairs := ToFields(f, nil, m)
		flips := 0
		for i, p := range pairs {
			for bit := range len(p.Value) * 8 {
				p.Value[bit/8] ^= 1 << (bit % 8)
				// A checksum may be written in capitals as well: the one flip that means the same.
				if got, err := unpack(f, pairs, m.Key, m.Body); err == nil && p.Name != f.name(numCRC) {
					t.Fatalf("form %d: bit %d of %q flipped: decoded as %+v", f, bit, p.Name, got)
				}
				p.Value[bit/8] ^= 1 << (bit % 8)
				flips++
			}
			changed := append([]Pair(nil), pairs...)
			changed[i].Name += "x"
			if got, err := unpack(f, changed, m.Key, m.Body); err == nil {
				t.Fatalf("form %d: %q renamed: decoded as %+v", f, p.Name, got)
			}
		}
		if _, err := unpack(f, pairs, m.Key, m.Body); err != nil || flips == 0 {
			t.Fatalf("form %d after %d flips: %v", f, flips, err)
		}
	}
}

func TestFieldsAddedOnTheWayAreIgnored(t *testing.T) {
	t.Parallel()
	want := full()
	for _, f := range []Form{Stream, Kafka} {
		pairs := append([]Pair{{"agent", []byte("1")}}, ToFields(f, nil, want)...)
		pairs = append(pairs, Pair{"h:added", []byte("1")}, Pair{"added", []byte("2")})
		got := must[*driver.Message](t)(unpack(f, pairs, want.Key, want.Body))
		same(t, got, want)
	}
}

// A later Ferry may add fields. They are summed, for that needs no understanding, and skipped.
func TestFieldsOfLaterFerryAreSkipped(t *testing.T) {
	t.Parallel()
	for f, later := range map[Form]string{Stream: "later", Kafka: "ferry-later"} {
		pairs := []Pair{{f.name(numVersion), []byte("1")}, {f.name(numID), []byte("a")}, {later, []byte("x")}}
		sum := fmt.Appendf(nil, "%08x", formSum(pairs, f.native, "", nil))
		got := must[*driver.Message](t)(unpack(f, append(pairs, Pair{f.name(numCRC), sum}), "", nil))
		same(t, got, &driver.Message{ID: "a"})
	}
}

func TestHeaderNamesOfForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		form         Form
		header, name string
	}{
		{Stream, "traceparent", "h:traceparent"},
		{Stream, "id", "h:id"},
		{Kafka, "traceparent", "traceparent"},
		{Kafka, "ferry-id", "ferry-header-ferry-id"},
		{Kafka, "ferry-header-x", "ferry-header-ferry-header-x"},
	} {
		name := c.form.headerName(c.header)
		back, ok := c.form.userName(name)
		if name != c.name || back != c.header || !ok {
			t.Errorf("header %q is %q and comes back as %q, %v; want %q", c.header, name, back, ok, c.name)
		}
	}
}

func TestFromFieldsRefuses(t *testing.T) {
	t.Parallel()
	v, crc := Pair{"ferry-v", []byte("1")}, Pair{"ferry-crc", []byte("00000000")}
	right := func(pairs ...Pair) []Pair {
		sum := fmt.Appendf(nil, "%08x", formSum(pairs, Kafka.native, "", nil))
		return append(pairs, Pair{"ferry-crc", sum})
	}
	for _, c := range []struct {
		name, says string
		pairs      []Pair
	}{
		{"nothing", `no field "ferry-v"`, nil},
		{"a newer version", `version "2", this program reads version 1`, []Pair{{"ferry-v", []byte("2")}}},
		{"no checksum", `no field "ferry-crc" after the version`, []Pair{v}},
		{"the checksum first", `no field "ferry-crc" after the version`, []Pair{crc, v}},
		{"a wrong checksum", "checksum is 00000000, but its content gives", []Pair{v, crc}},
		{"a checksum that is none", "not 8 hexadecimal digits", []Pair{v, {"ferry-crc", []byte("1")}}},
		{"a delay that is none", `field "ferry-delay" is "soon", not a whole number`, right(v, Pair{"ferry-delay", []byte("soon")})},
		{"a priority that is none", "priority 258 does not exist", right(v, Pair{"ferry-priority", []byte("258")})},
		{"a retry policy that is none", "cut off", right(v, Pair{"ferry-retry", []byte{0xff}})},
	} {
		m, err := unpack(Kafka, c.pairs, "", nil)
		if m != nil || !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, %v; want ErrInvalid that says %s", c.name, m, err, c.says)
		}
	}
}

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
				sum := p.Name == f.name(numCRC) &&
					(f == Stream || bit/8 >= len(versionText+" ") && bit/8 < len(versionText+" ")+sumDigits)
				if got, err := unpack(f, pairs, m.Key, m.Body); err == nil && !sum {
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
	stream := []Pair{{"v", []byte("1")}, {"id", []byte("a")}, {"later", []byte("x")}}
	stream = append(stream, Pair{"crc", fmt.Appendf(nil, "%08x", formSum(Stream, "", stream, "", nil))})
	for f, pairs := range map[Form][]Pair{Stream: stream, Kafka: sealedKafka("a", Pair{"ferry-later", []byte("x")})} {
		same(t, must[*driver.Message](t)(unpack(f, pairs, "", nil)), &driver.Message{ID: "a"})
	}
}

// sealedKafka gives headers the one that makes them a message without key and body.
func sealedKafka(id string, block ...Pair) []Pair {
	return append([]Pair{{kafkaHeader,
		fmt.Appendf(nil, "1 %08x %d %s", formSum(Kafka, id, block, "", nil), len(block), id)}}, block...)
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
		{Kafka, "ferry", "ferry-header-ferry"},
		{Kafka, "ferryman", "ferryman"},
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
	one := func(value string, more ...Pair) []Pair { return append([]Pair{{"ferry", []byte(value)}}, more...) }
	for _, c := range []struct {
		name, says string
		pairs      []Pair
	}{
		{"nothing", `no header "ferry"`, nil},
		{"another header of ours alone", `no header "ferry"`, []Pair{{"ferry-delay", []byte("1")}}},
		{"nothing in it", `version "", this program reads version 1`, one("")},
		{"a newer version", `version "2", this program reads version 1`, one("2 of something else")},
		{"no checksum", `header "ferry" does not end in`, one("1")},
		{"no number", `header "ferry" does not end in`, one("1 00000000 id")},
		{"a negative number", `header "ferry" does not end in`, one("1 00000000 -1 id")},
		{"more headers than there are", `of the 1 headers behind it`, one("1 00000000 2 id", Pair{"a", nil})},
		{"a wrong checksum", "checksum is 00000000, but its content gives", one("1 00000000 0 id")},
		{"a checksum that is none", "not 8 hexadecimal digits", one("1 1 0 id")},
		{"a delay that is none", `field "ferry-delay" is "soon", not a whole number`,
			sealedKafka("", Pair{"ferry-delay", []byte("soon")})},
		{"a priority that is none", "priority 258 does not exist", sealedKafka("", Pair{"ferry-priority", []byte("258")})},
		{"a retry policy that is none", "cut off", sealedKafka("", Pair{"ferry-retry", []byte{0xff}})},
	} {
		m, err := unpack(Kafka, c.pairs, "", nil)
		if m != nil || !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, %v; want ErrInvalid that says %s", c.name, m, err, c.says)
		}
	}
}

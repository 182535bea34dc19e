package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// Fuzzing cannot guess a checksum, so that each target also tries its input as the content of a sealed envelope.

func invalidOnly(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, driver.ErrInvalid) {
		t.Fatalf("%v is not ErrInvalid", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, v := range readVectors(f).Messages {
		data := v.envelope(f)
		f.Add(data)
		f.Add(data[2 : len(data)-crcSize])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, input := range [][]byte{data, sealed(data)} {
			m, err := Decode(input)
			invalidOnly(t, err)
			if err != nil {
				continue
			}
			again := Append(nil, m)
			if size := Size(m); size != len(again) {
				t.Fatalf("Size says %d, but it has %d bytes", size, len(again))
			}
			back := must[*driver.Message](t)(Decode(again))
			same(t, back, m)
			if third := Append(nil, back); !bytes.Equal(again, third) {
				t.Fatalf("not deterministic: %x, %x", again, third)
			}
		}
	})
}

func FuzzDecodeDeadLetter(f *testing.F) {
	for _, v := range readVectors(f).DeadLetters {
		data := v.envelope(f)
		f.Add(data)
		f.Add(data[2 : len(data)-crcSize])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, input := range [][]byte{data, sealed(data)} {
			dl, err := DecodeDeadLetter(input)
			invalidOnly(t, err)
			if err == nil {
				same(t, must[*driver.DeadLetter](t)(DecodeDeadLetter(AppendDeadLetter(nil, dl))), dl)
			}
		}
	})
}

func FuzzDecodeHistory(f *testing.F) {
	f.Add(AppendHistory(nil, dead().History...))
	f.Fuzz(func(t *testing.T, data []byte) {
		history, err := DecodeHistory(data)
		invalidOnly(t, err)
		if err == nil {
			same(t, must[[]driver.Failure](t)(DecodeHistory(AppendHistory(nil, history...))), history)
		}
	})
}

func FuzzFromFields(f *testing.F) {
	for _, v := range readVectors(f).Messages {
		m := v.Message.message(f)
		for _, form := range []Form{Stream, Kafka} {
			f.Add(uint8(form), joinPairs(ToFields(form, nil, m)), m.Key, m.Body)
		}
	}
	f.Fuzz(func(t *testing.T, form uint8, text []byte, key string, body []byte) {
		fm := Form(form % 2)
		pairs := splitPairs(text)
		for _, input := range [][]Pair{pairs, resealed(fm, pairs, key, body)} {
			m, err := unpack(fm, input, key, body)
			invalidOnly(t, err)
			if err == nil {
				same(t, must[*driver.Message](t)(unpack(fm, ToFields(fm, nil, m), m.Key, m.Body)), m)
			}
		}
	})
}

// joinPairs and splitPairs make one fuzzable input of pairs: name, 0, value, 0, and so on.
func joinPairs(pairs []Pair) []byte {
	var text []byte
	for _, p := range pairs {
		text = append(append(append(append(text, p.Name...), 0), p.Value...), 0)
	}
	return text
}

func splitPairs(text []byte) []Pair {
	var pairs []Pair
	for parts := bytes.Split(text, []byte{0}); len(parts) >= 2; parts = parts[2:] {
		pairs = append(pairs, Pair{string(parts[0]), parts[1]})
	}
	return pairs
}

// resealed gives pairs a version and a right checksum.
func resealed(f Form, pairs []Pair, key string, body []byte) []Pair {
	var block []Pair
	if f == Stream {
		block = append(block, Pair{"v", []byte(versionText)})
	}
	for _, p := range pairs {
		if p.Name != f.name(numCRC) && !f.native(p.Name) {
			block = append(block, p)
		}
	}
	sum := formSum(f, "id", block, key, body)
	if f == Kafka {
		return append([]Pair{{kafkaHeader, fmt.Appendf(nil, "%s %08x %d id", versionText, sum, len(block))}}, block...)
	}
	return append(block, Pair{"crc", fmt.Appendf(nil, "%08x", sum)}, Pair{"key", []byte(key)}, Pair{"body", body})
}

package envelope

import (
	"testing"

	"github.com/ferrymq/ferry/driver"
)

func benchmarkMessages(b *testing.B, run func(b *testing.B, m *driver.Message)) {
	for _, c := range []struct {
		name string
		m    *driver.Message
	}{{"plain", plain()}, {"full", full()}} {
		c.m.Body = make([]byte, 1024)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			run(b, c.m)
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	benchmarkMessages(b, func(b *testing.B, m *driver.Message) {
		var buf []byte
		for b.Loop() {
			buf = Append(buf[:0], m)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	benchmarkMessages(b, func(b *testing.B, m *driver.Message) {
		data := Append(nil, m)
		for b.Loop() {
			if _, err := Decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkToFieldsKafka(b *testing.B) {
	benchmarkMessages(b, func(b *testing.B, m *driver.Message) {
		var pairs []Pair
		for b.Loop() {
			pairs = ToFields(Kafka, pairs[:0], m)
		}
	})
}

func BenchmarkFromFieldsKafka(b *testing.B) {
	benchmarkMessages(b, func(b *testing.B, m *driver.Message) {
		pairs := ToFields(Kafka, nil, m)
		for b.Loop() {
			got := driver.Message{Key: m.Key, Body: m.Body}
			if err := FromFields(Kafka, pairs, &got); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDeadLetter(b *testing.B) {
	dl := dead()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendDeadLetter(buf[:0], dl)
		if _, err := DecodeDeadLetter(buf); err != nil {
			b.Fatal(err)
		}
	}
}

// Package codectest checks what every codec promises of bytes that nobody checked: an error or a value, no panic, and
// memory in proportion.
package codectest

import (
	"runtime/metrics"
	"testing"

	"github.com/ferrymq/ferry/codec"
)

// What a decode may allocate: so many bytes for each of the input, and some for the decoder itself.
const (
	perByte = 256
	besides = 1 << 20
)

// Bounded decodes data into v and returns the error. It fails the test if that took memory out of proportion to the
// data. What runs beside it counts, too: tests that call it are not parallel.
func Bounded(t testing.TB, c codec.Codec, data []byte, v any) error {
	t.Helper()
	before := allocated()
	err := c.Unmarshal(t.Context(), "topic", data, v)
	if used := allocated() - before; used > besides+perByte*uint64(len(data)) {
		t.Errorf("decoding %d bytes into a %T allocated %d: %.64x", len(data), v, used, data)
	}
	return err
}

// allocated returns how many bytes were ever allocated, small ones in steps of some kilobytes. It does not stop the
// world, which fuzzing would spend most of its time with.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Mangled decodes every beginning of data, and data with each of its bytes replaced, into what target returns: none may
// panic.
func Mangled(t testing.TB, c codec.Codec, data []byte, target func() any) {
	t.Helper()
	for n := range data {
		_ = c.Unmarshal(t.Context(), "topic", data[:n], target())
	}
	mangled := append([]byte(nil), data...)
	for i, right := range data {
		for _, wrong := range []byte{0, 1, 0x7f, 0x80, 0xbf, 0xdf, 0xff, ^right} {
			mangled[i] = wrong
			_ = c.Unmarshal(t.Context(), "topic", mangled, target())
		}
		mangled[i] = right
	}
}

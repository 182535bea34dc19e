// Package value reads MessagePack without a Go type to fit: what a body says, for whoever looks at it. It links nothing
// but the standard library; package msgpack, which is for programs that have types, links a large one.
package value

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ferrymq/ferry/codec"
)

// Reader is a codec that reads MessagePack into an any: nil, bool, int64, uint64, float32, float64, string, []byte,
// time.Time, Extension, []any and map[string]any. It writes nothing.
var Reader codec.Codec = reader{}

// Extension is a value of a type that an application made up.
type Extension struct {
	Type int8   `json:"type"`
	Data []byte `json:"data"`
}

type reader struct{}

// ContentType returns "application/msgpack".
func (reader) ContentType() string { return "application/msgpack" }

// Marshal refuses.
func (reader) Marshal(context.Context, string, any) ([]byte, error) {
	return nil, errors.New("msgpack: this codec only reads: use package codec/msgpack to write")
}

// Unmarshal decodes one value into a *any, and nothing may follow it.
func (reader) Unmarshal(_ context.Context, _ string, data []byte, v any) error {
	into, ok := v.(*any)
	if !ok {
		return fmt.Errorf("msgpack: this codec reads into a *any, not a %T: use package codec/msgpack", v)
	}
	if err := Check(data); err != nil {
		return fmt.Errorf("msgpack: not one value of MessagePack: correct the producer: %w", err)
	}
	got, err := (&checked{data}).value()
	if err != nil {
		return fmt.Errorf("msgpack: %w", err)
	}
	*into = got
	return nil
}

// checked is what is left to read of data that Check has passed: every length is there.
type checked struct{ left []byte }

func (c *checked) value() (any, error) {
	first := c.take(1)[0]
	switch {
	case first <= 0x7f || first >= 0xe0:
		return int64(int8(first)), nil
	case first <= 0x8f:
		return c.pairs(int(first & 0x0f))
	case first <= 0x9f:
		return c.list(int(first & 0x0f))
	case first <= 0xbf:
		return string(c.take(int(first & 0x1f))), nil
	}
	return c.formed(first)
}

// formed reads what begins with a byte from 0xc0 to 0xdf.
func (c *checked) formed(first byte) (any, error) {
	switch {
	case first == 0xc0:
		return nil, nil
	case first <= 0xc3:
		return first == 0xc3, nil
	case first <= 0xc6:
		return bytes.Clone(c.take(c.length(1 << (first - 0xc4)))), nil
	case first <= 0xc9:
		return c.extension(c.length(1 << (first - 0xc7))), nil
	case first == 0xca:
		return math.Float32frombits(binary.BigEndian.Uint32(c.take(4))), nil
	case first == 0xcb:
		return math.Float64frombits(c.number(8)), nil
	case first <= 0xcf:
		return c.number(1 << (first - 0xcc)), nil
	case first <= 0xd3:
		size := 1 << (first - 0xd0)
		shift := 64 - 8*size
		return int64(c.number(size)) << shift >> shift, nil // with its sign
	case first <= 0xd8:
		return c.extension(1 << (first - 0xd4)), nil
	case first <= 0xdb:
		return string(c.take(c.length(1 << (first - 0xd9)))), nil
	case first <= 0xdd:
		return c.list(c.length(2 << (first - 0xdc)))
	}
	return c.pairs(c.length(2 << (first - 0xde)))
}

func (c *checked) take(n int) []byte {
	taken := c.left[:n]
	c.left = c.left[n:]
	return taken
}

// number reads a number of n bytes, big endian.
func (c *checked) number(n int) (v uint64) {
	for _, b := range c.take(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (c *checked) length(n int) int { return int(c.number(n)) }

func (c *checked) list(n int) (any, error) {
	all := make([]any, n)
	for i := range all {
		var err error
		if all[i], err = c.value(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (c *checked) pairs(n int) (any, error) {
	all := make(map[string]any, n)
	for range n {
		k, err := c.value()
		if err != nil {
			return nil, err
		}
		key, err := textOf(k)
		if err != nil {
			return nil, err
		}
		if all[key], err = c.value(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// textOf is a key as the text that JSON wants.
func textOf(key any) (string, error) {
	switch k := key.(type) {
	case string:
		return k, nil
	case []byte:
		return string(k), nil
	case int64, uint64:
		return fmt.Sprint(k), nil
	}
	return "", fmt.Errorf("a key is a %T: correct the producer: use texts or whole numbers", key)
}

// extension reads a type and n bytes. Type -1 is a time, in one of three forms.
func (c *checked) extension(n int) any {
	kind := int8(c.take(1)[0])
	data := c.take(n)
	if kind != -1 {
		return Extension{kind, bytes.Clone(data)}
	}
	switch n {
	case 4:
		return time.Unix(int64(binary.BigEndian.Uint32(data)), 0).UTC()
	case 8:
		both := binary.BigEndian.Uint64(data) // 30 bits of nanoseconds, 34 of seconds
		return time.Unix(int64(both&(1<<34-1)), int64(both>>34)).UTC()
	case 12:
		return time.Unix(int64(binary.BigEndian.Uint64(data[4:])), int64(binary.BigEndian.Uint32(data))).UTC()
	}
	return Extension{kind, bytes.Clone(data)}
}

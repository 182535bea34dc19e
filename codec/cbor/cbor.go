// Package cbor is a codec for CBOR, RFC 8949.
package cbor

import (
	"context"
	"fmt"
	"math"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"github.com/ferrymq/ferry/codec"
)

// MaxDepth is how deep arrays, maps and tags may be nested.
const MaxDepth = 128

// Codec encodes any value. Fields are named by a tag such as `cbor:"name"`, or else as JSON names them.
var Codec codec.Codec = newCodec()

type cborCodec struct {
	enc cbor.EncMode
	dec cbor.DecMode
	err error // of the options: a test shows that there is none
}

func newCodec() (c cborCodec) {
	encoding := cbor.CoreDetEncOptions()
	encoding.Time, encoding.TimeTag = cbor.TimeRFC3339Nano, cbor.EncTagRequired // numbers of seconds would lose the rest
	if c.enc, c.err = encoding.EncMode(); c.err != nil {
		return c
	}
	c.dec, c.err = cbor.DecOptions{
		MaxNestedLevels:  MaxDepth,
		MaxArrayElements: math.MaxInt32, // their number is bounded by that of the bytes, which are looked through first
		MaxMapPairs:      math.MaxInt32,
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		DefaultMapType:   reflect.TypeFor[map[string]any](),
	}.DecMode()
	return c
}

// ContentType returns "application/cbor".
func (cborCodec) ContentType() string { return "application/cbor" }

// Marshal encodes v in the deterministic form of RFC 8949: equal values give equal bytes.
func (c cborCodec) Marshal(_ context.Context, _ string, v any) ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	return c.enc.Marshal(v)
}

// Unmarshal decodes one value, and nothing may follow it. A key that a map has twice is an error.
func (c cborCodec) Unmarshal(_ context.Context, _ string, data []byte, v any) error {
	if c.err != nil {
		return c.err
	}
	if err := c.dec.Unmarshal(data, v); err != nil {
		return fmt.Errorf("cbor: not a %T, or deeper than %d: correct the producer: %w", v, MaxDepth, err)
	}
	return nil
}

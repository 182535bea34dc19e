// Package msgpack is a codec for MessagePack.
package msgpack

import (
	"context"
	"fmt"
	"reflect"

	msgpack "github.com/ugorji/go/codec"

	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/msgpack/value"
)

// MaxDepth is how deep arrays and maps may be nested.
const MaxDepth = value.MaxDepth

// Codec encodes any value. Fields are named by a tag such as `codec:"name"`, or else as JSON names them.
var Codec codec.Codec = newCodec()

type messagePack struct{ handle *msgpack.MsgpackHandle }

func newCodec() messagePack {
	h := &msgpack.MsgpackHandle{WriteExt: true} // the current specification: text differs from bytes
	h.SignedInteger = true
	h.MapType = reflect.TypeFor[map[string]any]()
	h.Canonical = true
	return messagePack{h}
}

// ContentType returns "application/msgpack".
func (messagePack) ContentType() string { return "application/msgpack" }

// Marshal encodes v. Equal values give equal bytes.
func (c messagePack) Marshal(_ context.Context, _ string, v any) (data []byte, err error) {
	switch reflect.ValueOf(v).Kind() {
	case reflect.Func, reflect.Chan: // of which the library would make nil, or what is in the channel
		return nil, fmt.Errorf("msgpack: a %T cannot be encoded: use a value", v)
	}
	err = msgpack.NewEncoderBytes(&data, c.handle).Encode(v)
	return data, err
}

// Unmarshal decodes one value, and nothing may follow it.
func (c messagePack) Unmarshal(_ context.Context, _ string, data []byte, v any) error {
	if err := value.Check(data); err != nil {
		return fmt.Errorf("msgpack: not one value of MessagePack: correct the producer: %w", err)
	}
	if err := msgpack.NewDecoderBytes(data, c.handle).Decode(v); err != nil {
		return fmt.Errorf("msgpack: the value does not fit a %T: correct the producer: %w", v, err)
	}
	return nil
}

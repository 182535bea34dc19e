// Package protobuf is a codec for generated Protocol Buffers messages.
package protobuf

import (
	"context"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"

	"github.com/ferrymq/ferry/codec"
)

// MaxDepth is how deep messages may be nested.
const MaxDepth = 128

// Codec encodes values that are a proto.Message, and decodes into one: a handler has a *ferry.Msg[*pb.Order].
var Codec codec.Codec = protobuf{}

type protobuf struct{}

// ContentType returns "application/protobuf".
func (protobuf) ContentType() string { return "application/protobuf" }

// Marshal encodes a message. Equal messages give equal bytes within one version of a program.
func (protobuf) Marshal(_ context.Context, _ string, v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	switch {
	case !ok:
		return nil, fmt.Errorf("protobuf: a %T is no proto.Message: use a pointer to a generated type, or another codec", v)
	case !m.ProtoReflect().IsValid():
		return nil, fmt.Errorf("protobuf: the %T is nil: publish a message", v)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// Unmarshal decodes into a message, or into a pointer to a message, which it makes. Fields that the type does not know
// are kept.
func (protobuf) Unmarshal(_ context.Context, _ string, data []byte, v any) error {
	m, err := target(v)
	if err != nil {
		return err
	}
	if err := (proto.UnmarshalOptions{RecursionLimit: MaxDepth}).Unmarshal(data, m); err != nil {
		return fmt.Errorf("protobuf: not a %s, or deeper than %d: correct the producer: %w",
			m.ProtoReflect().Descriptor().FullName(), MaxDepth, err)
	}
	return nil
}

func target(v any) (proto.Message, error) {
	if m, ok := v.(proto.Message); ok && m.ProtoReflect().IsValid() {
		return m, nil
	}
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && !p.IsNil() && p.Elem().Kind() == reflect.Pointer {
		fresh := reflect.New(p.Elem().Type().Elem())
		if m, ok := fresh.Interface().(proto.Message); ok {
			p.Elem().Set(fresh)
			return m, nil
		}
	}
	return nil, fmt.Errorf("protobuf: cannot decode into a %T: use a pointer to a generated type, or another codec", v)
}

// Package avro is a codec for Avro with a schema registry: bodies are in the Confluent wire format, and a body is read
// by the schema it was written with, whatever the reader's own schema has become since.
package avro

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/twmb/avro"

	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/registry"
)

// Type is a Go type with its schema, made by Of or Infer.
type Type struct {
	goType reflect.Type
	schema *avro.Schema
	err    error
}

// Of gives a Go type its schema, in JSON. Fields are matched by name, or by a tag such as `avro:"name"`. The schema is
// complete: it refers to no other one.
func Of[T any](schema string) Type {
	s, err := avro.Parse(schema)
	return Type{bare(reflect.TypeFor[T]()), s, err}
}

// Infer gives a struct type the schema that its fields and their `avro` tags describe: a pointer may be null,
// `avro:"total,default=0"` has a default, `avro:"sum,alias=total"` was called total before. The record is named after
// the type, in a namespace.
func Infer[T any](namespace string) Type {
	s, err := avro.SchemaFor[T](avro.WithNamespace(namespace))
	return Type{bare(reflect.TypeFor[T]()), s, err}
}

// bare returns the type that t points to.
func bare(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// Codec encodes and decodes Avro. It is safe for concurrent use.
type Codec struct {
	registry *registry.Registry
	types    map[reflect.Type]bound
	readers  sync.Map // of reader, to *decoder
}

// bound is the schema of a Go type, which is what it writes and what it reads.
type bound struct {
	schema *avro.Schema
	record string
	stored registry.Schema
}

// reader is what a decoder is for: bodies of one schema that become values of one Go type. The type is nil for values
// without one.
type reader struct {
	id     int
	goType reflect.Type
}

// decoder is the outcome of resolving two schemas, which is kept for good.
type decoder struct {
	schema *avro.Schema
	err    error
}

var _ codec.Codec = (*Codec)(nil)

// New returns a codec for the given types. Bodies of any schema decode into a map[string]any or an any, too.
func New(r *registry.Registry, types ...Type) (*Codec, error) {
	if r == nil {
		return nil, errors.New("avro: the registry is nil: make one with registry.New")
	}
	c := &Codec{registry: r, types: make(map[reflect.Type]bound, len(types))}
	for _, t := range types {
		if t.err != nil {
			return nil, fmt.Errorf("avro: the schema of %v: %w", t.goType, t.err)
		}
		if _, twice := c.types[t.goType]; twice {
			return nil, fmt.Errorf("avro: two schemas for %v: keep one", t.goType)
		}
		c.types[t.goType] = bound{t.schema, recordName(t.schema), registry.Schema{Type: "AVRO", Text: t.schema.String()}}
	}
	return c, nil
}

func recordName(s *avro.Schema) string {
	root := s.Root()
	if root.Namespace == "" {
		return root.Name
	}
	return root.Namespace + "." + root.Name
}

// ContentType returns "application/avro".
func (c *Codec) ContentType() string { return "application/avro" }

// Marshal encodes a value of one of the codec's types with the schema of that type.
func (c *Codec) Marshal(ctx context.Context, topic string, v any) ([]byte, error) {
	b, err := c.boundTo(reflect.TypeOf(v))
	if err != nil {
		return nil, err
	}
	id, err := c.registry.ID(ctx, c.registry.Subject(topic, b.record), b.stored)
	if err != nil {
		return nil, err
	}
	return b.schema.AppendEncode(registry.AppendHeader(nil, id), v)
}

func (c *Codec) boundTo(t reflect.Type) (bound, error) {
	b, ok := c.types[bare(t)]
	if !ok {
		return b, fmt.Errorf("avro: no schema for a %v: give avro.New one, with avro.Of or avro.Infer", t)
	}
	return b, nil
}

// Unmarshal decodes a body by the schema it names, as the schema of the type of v reads it: fields that the writer did
// not have get their defaults, those that the reader does not have are skipped.
func (c *Codec) Unmarshal(ctx context.Context, _ string, data []byte, v any) error {
	id, rest, err := registry.Split(data)
	if err != nil {
		return err
	}
	d, err := c.decoderOf(ctx, id, reflect.TypeOf(v))
	if err != nil {
		return err
	}
	left, err := d.Decode(rest, v)
	switch {
	case err != nil:
		return fmt.Errorf("avro: the body does not fit schema %d, which it names: correct the producer: %w", id, err)
	case len(left) > 0:
		return fmt.Errorf("avro: %d bytes follow the value of schema %d, which the body names: correct the producer",
			len(left), id)
	}
	return nil
}

var generic = reflect.TypeFor[map[string]any]()

// decoderOf returns the schema that reads bodies of schema id into a target.
func (c *Codec) decoderOf(ctx context.Context, id int, target reflect.Type) (*avro.Schema, error) {
	if target == nil || target.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("avro: cannot decode into a %v: use a pointer", target)
	}
	want := reader{id, bare(target)}
	if want.goType.Kind() == reflect.Interface || want.goType == generic {
		want.goType = nil
	}
	if d, ok := c.readers.Load(want); ok {
		return d.(*decoder).schema, d.(*decoder).err
	}
	stored, err := c.registry.Schema(ctx, id)
	if err != nil {
		return nil, err
	}
	written, err := c.parse(ctx, stored)
	if errors.Is(err, codec.ErrUnavailable) {
		return nil, err
	}
	d := new(decoder)
	if d.err = err; err == nil {
		d.schema, d.err = c.resolve(written, want.goType)
	}
	if d.err != nil {
		d.err = fmt.Errorf("avro: schema %d: %w", id, d.err)
	}
	c.readers.Store(want, d)
	return d.schema, d.err
}

// resolve returns the schema that decodes what was written into a Go type.
func (c *Codec) resolve(written *avro.Schema, goType reflect.Type) (*avro.Schema, error) {
	if goType == nil {
		return written, nil
	}
	b, err := c.boundTo(goType)
	if err != nil {
		return nil, err
	}
	s, err := avro.Resolve(written, b.schema)
	if err != nil {
		return nil, incompatible(err, true)
	}
	return s, nil
}

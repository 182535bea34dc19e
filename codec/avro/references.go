package avro

import (
	"context"
	"fmt"

	"github.com/twmb/avro"

	"github.com/ferrymq/ferry/codec/registry"
)

// maxReferences bounds the schemas that one schema needs, itself included.
const maxReferences = 100

// parse parses a schema of the registry together with those that it refers to.
func (c *Codec) parse(ctx context.Context, s registry.Schema) (*avro.Schema, error) {
	if len(s.References) == 0 {
		return parseOne(s, avro.Parse)
	}
	l := loader{codec: c, seen: make(map[registry.Reference]bool)}
	return l.load(ctx, s)
}

func parseOne(s registry.Schema, parse func(string, ...avro.SchemaOpt) (*avro.Schema, error)) (*avro.Schema, error) {
	if s.Type != "AVRO" {
		return nil, fmt.Errorf("it is of type %s: use a codec for that, or correct the producer", s.Type)
	}
	return parse(s.Text)
}

// loader parses schemas after those that they refer to.
type loader struct {
	codec *Codec
	types avro.SchemaCache
	seen  map[registry.Reference]bool
}

func (l *loader) load(ctx context.Context, s registry.Schema) (*avro.Schema, error) {
	for _, ref := range s.References {
		if l.seen[ref] { // parsed, or a circle, which the parser refuses
			continue
		}
		if l.seen[ref] = true; len(l.seen) >= maxReferences {
			return nil, fmt.Errorf("it needs more than %d others: put them into one", maxReferences)
		}
		other, err := l.codec.registry.Referenced(ctx, ref)
		if err != nil {
			return nil, err
		}
		if _, err := l.load(ctx, other); err != nil {
			return nil, fmt.Errorf("version %d of subject %s, to which it refers: %w", ref.Version, ref.Subject, err)
		}
	}
	return parseOne(s, l.types.Parse)
}

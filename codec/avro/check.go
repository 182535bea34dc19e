package avro

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/twmb/avro"

	"github.com/ferrymq/ferry/codec/registry"
)

// IncompatibleError says why one schema cannot read what another one wrote.
type IncompatibleError struct {
	Field  string // its path, for example "address.zip"; "(root)" where it is the schema itself
	Reason string
	// NewReads is true if it is the newer schema that cannot read what the older one wrote.
	NewReads bool
}

// Error names the field.
func (e *IncompatibleError) Error() string {
	reads, wrote := "older", "newer"
	if e.NewReads {
		reads, wrote = wrote, reads
	}
	return fmt.Sprintf("the %s schema cannot read what the %s one wrote: field %s: %s: give new fields a default and "+
		"keep the types of old ones",
		reads, wrote, e.Field, e.Reason)
}

// Is makes errors.Is(err, registry.ErrIncompatible) true, whoever found it.
func (e *IncompatibleError) Is(target error) bool { return target == registry.ErrIncompatible }

// incompatible names the field of an error of the rules of resolution.
func incompatible(err error, newReads bool) error {
	var c *avro.CompatibilityError
	if !errors.As(err, &c) {
		return err
	}
	reason := c.Detail
	if c.ReaderType != "" && c.WriterType != "" {
		reason = fmt.Sprintf("%s (%s is read, %s was written)", reason, c.ReaderType, c.WriterType)
	}
	return &IncompatibleError{Field: c.Path, Reason: reason, NewReads: newReads}
}

// Compatible checks by Avro's rules of resolution whether newer may follow older at a level. The error is an
// IncompatibleError, or tells which of them is no schema.
func Compatible(level registry.Level, older, newer string) error {
	o, err := avro.Parse(older)
	if err != nil {
		return fmt.Errorf("avro: the older schema: %w", err)
	}
	n, err := avro.Parse(newer)
	if err != nil {
		return fmt.Errorf("avro: the newer schema: %w", err)
	}
	return compatible(level, o, n)
}

func compatible(level registry.Level, older, newer *avro.Schema) error {
	backward, forward := false, false
	switch level {
	case registry.None:
	case registry.Backward, registry.BackwardTransitive:
		backward = true
	case registry.Forward, registry.ForwardTransitive:
		forward = true
	case registry.Full, registry.FullTransitive:
		backward, forward = true, true
	default:
		return fmt.Errorf("avro: unknown compatibility level %q: use one of package registry", level)
	}
	if backward {
		if err := avro.CheckCompatibility(older, newer); err != nil {
			return incompatible(err, true)
		}
	}
	if forward {
		if err := avro.CheckCompatibility(newer, older); err != nil {
			return incompatible(err, false)
		}
	}
	return nil
}

// Check compares the schema of a value's type with the history of its subject, at the level that the registry has for
// it: first here, so that the error names version and field, then by the verdict of the registry. A program calls it at
// its start for what it publishes, so that it does not begin what consumers cannot read. A subject without a history
// takes any schema.
func (c *Codec) Check(ctx context.Context, topic string, v any) error {
	b, err := c.boundTo(reflect.TypeOf(v))
	if err != nil {
		return err
	}
	subject := c.registry.Subject(topic, b.record)
	level, err := c.registry.Level(ctx, subject)
	if err != nil {
		return err
	}
	versions, err := c.registry.Versions(ctx, subject, !level.Transitive())
	if err != nil {
		return err
	}
	for _, old := range versions {
		written, err := c.parse(ctx, old.Schema)
		if err == nil {
			err = compatible(level, written, b.schema)
		}
		if err != nil {
			return fmt.Errorf("avro: subject %s, level %s, version %d: %w", subject, level, old.Number, err)
		}
	}
	return c.registry.Compatible(ctx, subject, b.stored, level)
}

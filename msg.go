package ferry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver"
)

// Msg is a delivery with its body decoded: what a typed handler gets.
type Msg[T any] struct {
	*Delivery
	Value T
}

// Decode decodes the body of a delivery by its content type. The error is an ErrInvalid if trying again cannot help,
// and an ErrNotApplied if something the codec asks, a schema registry for example, did not answer.
func Decode[T any](ctx context.Context, b *Broker, d *Delivery) (*Msg[T], error) {
	plain, err := b.UndoFilters(ctx, d.Message)
	if err != nil {
		return nil, err
	}
	if plain != d.Message { // it did not come through a worker
		undone := *d
		undone.Message = plain
		d = &undone
	}
	m := &Msg[T]{Delivery: d}
	if raw, ok := any(&m.Value).(*[]byte); ok {
		*raw = d.Body
		return m, nil
	}
	c, ok := codec.ForContentType(d.ContentType, b.codecs...)
	if d.ContentType == "" { // a foreign producer that did not say
		c, ok = b.codecs[0], true
	}
	if !ok {
		return nil, unknownContentType(d.ContentType, b.codecs)
	}
	if err := c.Unmarshal(ctx, d.Topic, d.Body, &m.Value); err != nil {
		return nil, notDecoded(c, m.Value, err)
	}
	return m, nil
}

func unknownContentType(contentType string, codecs []codec.Codec) error {
	known := make([]string, len(codecs))
	for i, c := range codecs {
		known[i] = c.ContentType()
	}
	return driver.NewError(ErrInvalid,
		fmt.Sprintf("no codec for content type %q, only for %s", contentType, strings.Join(known, ", ")),
		"add one to Options.Codecs, then replay the dead letter", nil)
}

func notDecoded(c codec.Codec, into any, err error) error {
	if errors.Is(err, codec.ErrUnavailable) {
		return driver.NewError(ErrNotApplied, "the body cannot be decoded as "+c.ContentType()+" now",
			"see that what the codec asks answers, then try again", err)
	}
	return driver.NewError(ErrInvalid, fmt.Sprintf("the body does not decode as %s into a %T", c.ContentType(), into),
		"correct the producer, then edit and replay the dead letter", err)
}

func notEncoded(c codec.Codec, value any, err error) error {
	if errors.Is(err, codec.ErrUnavailable) {
		return driver.NewError(ErrNotApplied, fmt.Sprintf("a %T cannot be encoded as %s now", value, c.ContentType()),
			"see that what the codec asks answers, then try again", err)
	}
	return driver.NewError(ErrInvalid, fmt.Sprintf("a %T cannot be encoded as %s", value, c.ContentType()),
		"publish a value this codec can encode, or bytes", err)
}

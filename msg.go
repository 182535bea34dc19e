package ferry

import (
	"fmt"

	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver"
)

// Msg is a delivery with its body decoded: what a typed handler gets.
type Msg[T any] struct {
	*Delivery
	Value T
}

// Decode decodes the body of a delivery by its content type. The error is an ErrInvalid: trying again cannot help.
func Decode[T any](b *Broker, d *Delivery) (*Msg[T], error) {
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
		return nil, driver.NewError(ErrInvalid, fmt.Sprintf("no codec for content type %q", d.ContentType), "add one to Options.Codecs", nil)
	}
	if err := c.Unmarshal(d.Body, &m.Value); err != nil {
		return nil, driver.NewError(ErrInvalid, fmt.Sprintf("the body does not decode as %s into a %T", c.ContentType(), m.Value),
			"correct the producer, then edit and replay the dead letter", err)
	}
	return m, nil
}

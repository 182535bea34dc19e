package admin

import (
	"context"
	"encoding/json"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver"
)

// viewWhole shows one message with its body decoded. Lists leave that out: a codec may ask a schema registry for each
// body.
func (a *API) viewWhole(ctx context.Context, topic string, e driver.Entry) api.Message {
	v := a.viewEntry(ctx, topic, e)
	if !auth.From(ctx).May(auth.Payload, topic) {
		return v
	}
	plain, err := a.broker.UndoEntry(ctx, e)
	if err != nil || plain.Message == nil {
		return v // viewEntry shows it as it is stored
	}
	mask := a.maskOf(topic)
	c, found := codec.ForContentType(plain.Message.ContentType, a.o.Codecs...)
	if !found || len(plain.Message.Body) == 0 {
		return v
	}
	_, nameless := c.(codec.Nameless)
	if nameless && len(mask.Fields) > 0 {
		return v // what is masked has a name, and no field of this body has: it stays hidden whole
	}
	text, err := decode(ctx, c, topic, plain.Message.Body)
	switch {
	case err != nil && len(mask.Fields) > 0:
		v.Undecoded = "the body does not decode, and parts of it are masked"
	case err != nil:
		v.Undecoded = err.Error()
	default:
		shown := mask.text(text)
		v.Decoded, v.Masked, v.Schemaless = shown, v.Masked || shown != text, nameless
	}
	return v
}

// decode returns a body as JSON.
func decode(ctx context.Context, c codec.Codec, topic string, body []byte) (string, error) {
	var value any
	if err := c.Unmarshal(ctx, topic, body, &value); err != nil {
		return "", err
	}
	written, err := json.Marshal(value)
	return string(written), err
}

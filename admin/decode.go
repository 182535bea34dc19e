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
	text, err := a.decode(ctx, topic, plain.Message)
	switch {
	case err != nil && len(mask.Fields) > 0:
		v.Undecoded = "the body does not decode, and parts of it are masked"
	case err != nil:
		v.Undecoded = err.Error()
	case text != "":
		shown := mask.text(text)
		v.Decoded, v.Masked = shown, v.Masked || shown != text
	}
	return v
}

// decode returns the body of a message as JSON, or nothing where no codec of the options has its content type.
func (a *API) decode(ctx context.Context, topic string, m *driver.Message) (string, error) {
	c, found := codec.ForContentType(m.ContentType, a.o.Codecs...)
	if !found || len(m.Body) == 0 {
		return "", nil
	}
	var value any
	if err := c.Unmarshal(ctx, topic, m.Body, &value); err != nil {
		return "", err
	}
	written, err := json.Marshal(value)
	return string(written), err
}

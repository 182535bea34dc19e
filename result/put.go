package result

import (
	"context"

	"github.com/ferrymq/ferry"
)

// Put keeps a body as the result of a message that somebody outside this process has handled, for a gateway that
// settles for its clients. It is there for others when Put returns: acknowledge the delivery after it, and not at all
// if there is an error, which means what one of Return does. To put it again is harmless.
func Put(ctx context.Context, b *ferry.Broker, d *ferry.Delivery, o Options, body []byte, contentType string) error {
	k, err := newKeeper(b, o)
	if err != nil {
		return err
	}
	if body == nil {
		body = []byte{}
	}
	return newRecord(k, d).put(ctx, Status{State: Done, Body: body, ContentType: contentType})
}

package worker

import (
	"context"

	"github.com/ferrymq/ferry"
)

// Handler handles one delivery. What it returns decides what becomes of the message. Body and headers are the handler's
// own: it may keep and change them. The rest of the delivery is the worker's, which settles by it: whoever wants to
// change that makes a copy.
type Handler func(ctx context.Context, d *ferry.Delivery) error

// Middleware wraps a handler: it may look at the delivery, change the context, and replace the error.
type Middleware func(next Handler) Handler

// chain wraps h so that the first middleware is the outermost.
func chain(h Handler, all ...[]Middleware) Handler {
	for i := len(all) - 1; i >= 0; i-- {
		for j := len(all[i]) - 1; j >= 0; j-- {
			h = all[i][j](h)
		}
	}
	return h
}

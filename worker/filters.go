package worker

import (
	"context"
	"slices"

	"github.com/ferrymq/ferry"
)

// undo is the outermost middleware: it undoes what the producer's filters did to a body. It passes on a copy, because
// what is settled, as a dead letter perhaps, is the message as it is stored.
func undo(b *ferry.Broker) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, d *ferry.Delivery) error {
			m, err := b.UndoFilters(ctx, d.Message)
			if err != nil {
				return undecoded(err)
			}
			if m != d.Message {
				plain := *d
				plain.Message = m
				d = &plain
			}
			return next(ctx, d)
		}
	}
}

// undoBatch does so for batches, of which only those pass undo that have something to be undone.
func undoBatch(b *ferry.Broker, h batchHandler, outer, inner []Middleware) batchHandler {
	plain, filtered := h, wrapBatch(h, []Middleware{undo(b)}, outer, inner)
	if len(outer)+len(inner) > 0 {
		plain = wrapBatch(h, outer, inner)
	}
	return func(ctx context.Context, ds []*ferry.Delivery) []error {
		if slices.ContainsFunc(ds, encoded) {
			return filtered(ctx, ds)
		}
		return plain(ctx, ds)
	}
}

func encoded(d *ferry.Delivery) bool {
	_, yes := d.Headers[ferry.EncodingHeader]
	return yes
}

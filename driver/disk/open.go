package disk

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry"
)

// Open returns a Broker on a disk driver of its own.
func Open(ctx context.Context, o Options) (*ferry.Broker, error) {
	d, err := New(ctx, o)
	if err != nil {
		return nil, err
	}
	b, err := ferry.New(d, o.Broker)
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	return b, nil
}

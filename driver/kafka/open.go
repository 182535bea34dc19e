package kafka

import (
	"context"

	"github.com/ferrymq/ferry"
)

// Open returns a Broker on a driver of its own.
func Open(ctx context.Context, o Options) (*ferry.Broker, error) {
	d, err := New(ctx, o)
	if err != nil {
		return nil, err
	}
	b, err := ferry.New(d, o.Broker)
	if err != nil {
		_ = d.Close(ctx)
		return nil, err
	}
	return b, nil
}

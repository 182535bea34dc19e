package gateway

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

// guard runs a method of the guard store. Limits belong to no topic.
func (g *Gateway) guard(ctx context.Context, q *frame.Guard) (frame.Value, error) {
	if g.guards == nil {
		return nil, driver.NewError(driver.ErrUnsupported, "the server has no guard store",
			"give it one: store in ferry.yaml, or ferry serve --store", nil)
	}
	scope, err := g.guards.Scope(q.Method)
	if err == nil {
		err = may(ctx, scope, "")
	}
	if err != nil {
		return nil, err
	}
	data, err := g.guards.Answer(ctx, q.Method, q.Data)
	return (*frame.Bytes)(&data), err
}

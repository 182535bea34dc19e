package memory

import (
	"context"

	"github.com/ferrymq/ferry"
)

// Open returns a Broker on a memory driver of its own.
func Open(_ context.Context, o Options) (*ferry.Broker, error) { return ferry.New(New(o), o.Broker) }

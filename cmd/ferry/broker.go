package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
)

// brokerFlag adds --broker.
func brokerFlag(flags *pflag.FlagSet, url *string) {
	flags.StringVar(url, "broker", "memory://", "URL of the broker, or just its scheme")
}

// openBroker opens the broker of --broker, where "memory" stands for "memory://". A URL that cannot be one is a
// mistake of usage.
func openBroker(ctx context.Context, url string, o ferry.Options) (*ferry.Broker, error) {
	if !strings.Contains(url, ":") {
		url += "://"
	}
	b, err := open.With(ctx, url, o)
	var e *ferry.Error
	if errors.Is(err, ferry.ErrInvalid) && errors.As(err, &e) {
		return nil, usage(e.Text, e.Hint)
	}
	return b, err
}

// brokerName returns what may be shown of a broker's URL: everything in it but the scheme may be secret.
func brokerName(b *ferry.Broker) string { return b.Driver().Capabilities().Driver + "://" }

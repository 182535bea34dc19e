package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
)

// brokerFlag adds --broker.
func brokerFlag(flags *pflag.FlagSet, url *string) {
	flags.StringVar(url, "broker", "memory://", "URL of the broker, or just its scheme")
}

// quiet is the logger of brokers: what a command has to say it says itself.
var quiet = slog.New(slog.DiscardHandler)

// opener opens a broker by its URL: open.URL, except in tests.
type opener func(ctx context.Context, url string, opts ...ferry.Options) (*ferry.Broker, error)

// diskURL is the URL of a broker in a directory.
func diskURL(dir string) string {
	if filepath.IsAbs(dir) {
		return "disk://" + filepath.ToSlash(dir)
	}
	return "disk://./" + filepath.ToSlash(dir)
}

// openBroker opens the broker of --broker, where "memory" stands for "memory://".
func openBroker(ctx context.Context, url string, o ferry.Options) (*ferry.Broker, error) {
	return open.URL(ctx, withScheme(url), o)
}

func withScheme(url string) string {
	if !strings.Contains(url, ":") {
		url += "://"
	}
	return url
}

// brokerName returns what may be shown of a broker's URL: everything in it but the scheme may be secret.
func brokerName(b *ferry.Broker) string { return b.Driver().Capabilities().Driver + "://" }

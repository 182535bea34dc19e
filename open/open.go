// Package open opens a broker by its URL, so that configuration chooses it and the program stays the same.
//
// It links every driver. A program that needs only one may open that one directly, with memory.Open for example.
package open

import (
	"context"
	"fmt"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// schemes is what the hints say about the URLs that work today.
const schemes = "what works today: memory://; disk:///path or disk://./path; " +
	"redis://host:6379/0, rediss://, redis+sentinel://h1,h2/primary, redis+cluster://h1,h2; redisstream in place of " +
	"redis in each; " +
	"kafka://h1:9092,h2:9092, kafkas:// over TLS; ferry://host:7070, ferrys:// over TLS"

// URL opens the broker that rawURL names, "memory://" for example, with the options of a broker if some are given:
// hooks, logger, codecs.
//
// Its errors never contain a user, a password or a parameter's value, so they may be logged.
func URL(ctx context.Context, rawURL string, opts ...ferry.Options) (*ferry.Broker, error) {
	var o ferry.Options
	switch {
	case len(opts) > 1:
		return nil, driver.NewError(driver.ErrInvalid, "a broker has one set of options",
			"put all into one ferry.Options", nil)
	case len(opts) == 1:
		o = opts[0]
	}
	if ctx.Err() != nil {
		return nil, driver.NewError(driver.ErrNotApplied, "the context had ended before the broker was opened",
			"use a live context", context.Cause(ctx))
	}
	scheme, err := schemeOf(rawURL)
	if err != nil {
		return nil, err
	}
	rest, p, err := split(scheme, rawURL)
	if err != nil {
		return nil, err
	}
	so, spooled := p.spool()
	b, err := openScheme(ctx, scheme, rest, p, o)
	if err == nil && spooled {
		b, err = withSpool(ctx, b, so, o)
	}
	if err == nil {
		for _, f := range Diagnose(rawURL) {
			b.Logger().Warn("ferry: "+f.Text, "hint", f.Hint)
		}
	}
	return b, err
}

func openScheme(ctx context.Context, scheme, rest string, p *parameters, o ferry.Options) (*ferry.Broker, error) {
	switch scheme {
	case "memory":
		return openMemory(ctx, rest, p, o)
	case "disk":
		return openDisk(ctx, rest, p, o)
	case "redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster":
		return openRedis(ctx, rest, p, o)
	case "redisstream", "redisstreams", "redisstream+sentinel", "redisstreams+sentinel", "redisstream+cluster",
		"redisstreams+cluster":
		return openRedisStream(ctx, rest, p, o)
	case "kafka", "kafkas":
		return openKafka(ctx, rest, p, o)
	case "ferry", "ferrys":
		return openFerry(ctx, rest, p, o)
	}
	return nil, errScheme(scheme)
}

func errScheme(scheme string) error {
	return driver.NewError(driver.ErrInvalid, fmt.Sprintf("broker scheme %q is not known", scheme), schemes, nil)
}

// schemeOf returns what stands before "://", in lower case. Only a well-formed scheme is ever shown: in a URL with a
// forgotten scheme the first word may be a password.
func schemeOf(rawURL string) (string, error) {
	scheme, _, found := strings.Cut(rawURL, "://")
	scheme = strings.ToLower(scheme)
	if !found || scheme == "" || len(scheme) > 32 ||
		strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+.-") != "" {
		return "", driver.NewError(driver.ErrInvalid, "the broker URL has no scheme",
			"write it as scheme://...; "+schemes, nil)
	}
	return scheme, nil
}

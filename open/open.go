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
	"github.com/ferrymq/ferry/driver/memory"
)

// schemes is what the hints say about the URLs that work today.
const schemes = "the schemes that work today: memory:// (parameters: max_messages, max_body)"

// URL opens the broker that rawURL names, "memory://" for example, with default options.
func URL(ctx context.Context, rawURL string) (*ferry.Broker, error) {
	return With(ctx, rawURL, ferry.Options{})
}

// With opens the broker that rawURL names, with these options: hooks, logger, codecs.
//
// Its errors never contain anything from the URL but the scheme and the names of parameters, so they may be logged.
func With(ctx context.Context, rawURL string, o ferry.Options) (*ferry.Broker, error) {
	if ctx.Err() != nil {
		return nil, driver.NewError(driver.ErrNotApplied, "the context had ended before the broker was opened", "use a live context", context.Cause(ctx))
	}
	scheme, err := schemeOf(rawURL)
	if err != nil {
		return nil, err
	}
	switch scheme {
	case "memory":
		mo, err := memoryOptions(rawURL)
		if err != nil {
			return nil, err
		}
		mo.Broker = o
		return memory.Open(ctx, mo)
	case "disk",
		"redis", "rediss", "redis+sentinel", "redis+cluster",
		"redisstream", "redisstreams", "redisstream+sentinel", "redisstream+cluster",
		"kafka", "kafkas":
		return nil, driver.NewError(driver.ErrUnsupported, scheme+":// is planned, but not built yet", schemes, nil)
	}
	return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("broker scheme %q is not known", scheme), schemes, nil)
}

// schemeOf returns what stands before "://", in lower case. Only a well-formed scheme is ever shown: in a URL with a
// forgotten scheme the first word may be a password.
func schemeOf(rawURL string) (string, error) {
	scheme, _, found := strings.Cut(rawURL, "://")
	scheme = strings.ToLower(scheme)
	if !found || scheme == "" || len(scheme) > 32 || strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+.-") != "" {
		return "", driver.NewError(driver.ErrInvalid, "the broker URL has no scheme", "write it as scheme://...; "+schemes, nil)
	}
	return scheme, nil
}

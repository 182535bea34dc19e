package open

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/guard"
	guardredis "github.com/ferrymq/ferry/guard/redis"
	guardremote "github.com/ferrymq/ferry/guard/remote"
)

// Guards opens the guard store that belongs to the broker that rawURL names, so that programs on one broker share their
// limits by configuration alone: in Redis under the same prefix, in the directory of a broker on disk, in memory, or
// through the server of a ferry:// URL. Kafka has none: ErrUnsupported. Its errors may be logged, as those of URL.
func Guards(ctx context.Context, rawURL string) (guard.Store, error) {
	if ctx.Err() != nil {
		return nil, driver.NewError(driver.ErrNotApplied, "the context had ended before the guard store was opened",
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
	_, _ = p.spool() // is the broker's
	switch base, _, _ := strings.Cut(scheme, "+"); base {
	case "memory":
		_, _ = p.number("max_messages"), p.number("max_body") // are the broker's
		if err := p.done(); err != nil {
			return nil, err
		}
		return guard.NewMemory(guard.MemoryOptions{}), nil
	case "disk":
		do, err := diskOptionsOf(rest, p)
		if err != nil {
			return nil, err
		}
		return guard.OpenDir(filepath.Join(do.Dir, disk.GuardsDir), guard.DirOptions{})
	case "redis", "rediss", "redisstream", "redisstreams":
		return redisGuards(ctx, rest, p)
	case "ferry", "ferrys":
		return ferryGuards(ctx, rest, p)
	case "kafka", "kafkas":
		return nil, driver.NewError(driver.ErrUnsupported, "a Kafka broker has no guard store",
			"open one in Redis: open.Guards with a redis:// URL", nil)
	}
	return nil, errScheme(scheme)
}

// redisGuards opens the store beside a broker on Redis. Parameters of the broker itself are left to it.
func redisGuards(ctx context.Context, rest string, p *parameters) (guard.Store, error) {
	o := guardredis.Options{Prefix: p.text("prefix"),
		URL: strings.Replace(p.scheme, "redisstream", "redis", 1) + "://" + rest}
	for _, own := range []string{"shards", "max_body", "strict", "partitions", "window", "insecure"} {
		p.values.Del(own)
	}
	connection := p.connection()
	if err := p.done(); err != nil {
		return nil, err
	}
	if len(connection) > 0 {
		o.URL += "?" + connection.Encode()
	}
	return guardredis.Open(ctx, o)
}

// ferryGuards opens the store of a server.
func ferryGuards(ctx context.Context, rest string, p *parameters) (guard.Store, error) {
	o := guardremote.Options{URL: p.scheme + "://" + rest}
	o.Token, o.TokenFile = token(p)
	_ = p.flag("insecure") // see Diagnose
	if p.scheme == "ferrys" {
		o.TLS = ferryTLS(p)
	}
	if err := p.done(); err != nil {
		return nil, err
	}
	return guardremote.Open(ctx, o)
}

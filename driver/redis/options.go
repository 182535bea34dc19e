package redis

import (
	"cmp"
	"log/slog"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// Options of a Driver. One of URL and Client is required.
type Options struct {
	// URL says where the server is: redis://user:password@host:6379/0, rediss:// for TLS, redis+sentinel://h1,h2/master,
	// redis+cluster://h1,h2. docs/redis.md lists the parameters.
	URL string
	// Client is used instead of URL. It is never closed by the driver.
	Client goredis.UniversalClient
	// Prefix begins every key, and so separates namespaces on one server. Defaults to "ferry".
	Prefix string
	// Shards is over how many hash slots a new topic is spread. Defaults to 1.
	Shards int
	// MaxBody is the largest body in bytes. Defaults to 4 MiB.
	MaxBody int
	// Strict refuses a server whose settings may lose messages, instead of a warning to Logger.
	Strict bool
	// Fallback is how often everything is looked at in case a wake-up was lost. Defaults to 1 s.
	Fallback time.Duration
	// Logger gets warnings about the server, and errors of background work. Defaults to slog.Default.
	Logger *slog.Logger
	// Broker are the options of the Broker that Open returns.
	Broker ferry.Options
}

// Defaults of Options.
const (
	DefaultPrefix   = redisshell.DefaultPrefix
	DefaultMaxBody  = redisshell.DefaultMaxBody
	DefaultFallback = redisshell.DefaultFallback
)

// resolved fills in the defaults and says what is wrong.
func (o Options) resolved() (Options, error) {
	c, err := o.common().Resolved()
	o.Prefix, o.MaxBody, o.Fallback, o.Logger, o.Shards = c.Prefix, c.MaxBody, c.Fallback, c.Logger, c.Parts
	return o, err
}

// common are the options that the other driver on Redis has, too.
func (o Options) common() redisshell.Options {
	return redisshell.Options{URL: o.URL, Client: o.Client, Prefix: o.Prefix, MaxBody: o.MaxBody, Strict: o.Strict,
		Fallback: o.Fallback, Logger: o.Logger, Part: "shard", Parts: cmp.Or(o.Shards, 1)}
}

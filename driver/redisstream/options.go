package redisstream

import (
	"log/slog"
	"regexp"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Options of a Driver. One of URL and Client is required.
type Options struct {
	// URL says where the server is, as in package redis: redis://host, rediss://, redis+sentinel://h1,h2/master, redis+cluster://h1,h2.
	URL string
	// Client is used instead of URL. It is never closed by the driver.
	Client goredis.UniversalClient
	// Prefix begins every key, and so separates namespaces on one server. Defaults to "ferry".
	Prefix string
	// Partitions is how many streams a new topic has. Defaults to 8.
	Partitions int
	// Window is how many entries a group reads ahead in each partition; priorities reach as far. Defaults to 2000.
	Window int
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
	DefaultPrefix     = "ferry"
	DefaultPartitions = 8
	DefaultWindow     = 2000
	DefaultMaxBody    = 4 << 20
	DefaultFallback   = time.Second

	maxPartitions = 1024
)

var validPrefix = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)

// resolved fills in the defaults and says what is wrong.
func (o Options) resolved() (Options, error) {
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if o.Partitions == 0 {
		o.Partitions = DefaultPartitions
	}
	if o.Window == 0 {
		o.Window = DefaultWindow
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.Fallback == 0 {
		o.Fallback = DefaultFallback
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	bad := func(text, hint string) error { return driver.NewError(driver.ErrInvalid, text, hint, nil) }
	switch {
	case (o.URL == "") == (o.Client == nil):
		return o, bad("one of URL and Client must be given", "set Options.URL, or Options.Client to use a client of your own")
	case !validPrefix.MatchString(o.Prefix):
		return o, bad("the key prefix is not allowed", "use 1 to 64 letters, digits, '.', '_', ':' or '-', beginning with a letter or digit")
	case o.Partitions < 0 || o.Partitions > maxPartitions:
		return o, bad("the number of partitions is out of range", "use 1 to 1024")
	case o.MaxBody < 0 || o.Fallback < 0 || o.Window < 0:
		return o, bad("MaxBody, Window or Fallback is negative", "leave it zero for the default")
	}
	return o, nil
}

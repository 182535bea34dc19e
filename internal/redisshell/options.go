package redisshell

import (
	"log/slog"
	"regexp"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// Options are those that both drivers have; their own say what they mean.
type Options struct {
	URL      string
	Client   goredis.UniversalClient
	Prefix   string
	MaxBody  int
	Strict   bool
	Fallback time.Duration
	Logger   *slog.Logger
	Part     string // what a part of a topic is called, as TopicKind has it
	Parts    int
}

// Defaults of Options.
const (
	DefaultPrefix   = "ferry"
	DefaultMaxBody  = 4 << 20
	DefaultFallback = time.Second
)

var validPrefix = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)

// Resolved fills in the defaults and says what is wrong.
func (o Options) Resolved() (Options, error) {
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
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
		return o, bad("the key prefix is not allowed",
			"use 1 to 64 letters, digits, '.', '_', ':' or '-', beginning with a letter or digit")
	case o.MaxBody < 0 || o.Fallback < 0:
		return o, bad("MaxBody or Fallback is negative", "leave it zero for the default")
	case o.Parts < 0 || o.Parts > MostParts:
		return o, bad("the number of "+o.Part+"s is out of range", "use 1 to 1024")
	}
	return o, nil
}

package redisconn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// Survey knows what a server can do now: its settings may be changed, and a fail-over may lead to a server with others.
type Survey struct {
	client goredis.UniversalClient
	key    string
	logger *slog.Logger
	opened *Server
	now    atomic.Pointer[Server]
	last   atomic.Int64 // when it was looked at, by our clock
	missed atomic.Bool  // the last look found no server that could tell
}

// loadingPause is how long to wait before a server that is loading is asked again.
const loadingPause = 50 * time.Millisecond

// examineLoaded examines a server, once it has loaded its data.
func examineLoaded(ctx context.Context, c goredis.UniversalClient, key string) (*Server, error) {
	s, err := Examine(ctx, c, key)
	for isLoading(err) {
		loading := err
		if !Pause(ctx, loadingPause) {
			return nil, loading
		}
		if s, err = Examine(ctx, c, key); ctx.Err() != nil {
			return nil, loading
		}
	}
	return s, err
}

// NewSurvey examines a server for the first time, and waits for one that is loading. A finding that messages may be
// lost is an error if strict, else a warning.
func NewSurvey(ctx context.Context, c goredis.UniversalClient, key string, strict bool,
	logger *slog.Logger) (*Survey, error) {
	s, err := examineLoaded(ctx, c, key)
	if err != nil {
		return nil, notOpened(err)
	}
	for _, f := range s.Findings() {
		if f.Severity != driver.SeverityError {
			continue
		}
		if strict {
			return nil, driver.NewError(driver.ErrUnsupported, f.Text, f.Hint, nil)
		}
		logger.Warn("ferry: "+f.Text, "hint", f.Hint)
	}
	v := &Survey{client: c, key: key, logger: logger, opened: s}
	v.now.Store(s)
	v.last.Store(time.Now().UnixNano())
	return v, nil
}

// notOpened says of a question without an answer that it has changed nothing.
func notOpened(err error) error {
	var e *driver.Error
	if errors.As(err, &e) && errors.Is(e.Kind, driver.ErrUnknown) {
		return driver.NewError(driver.ErrNotApplied, e.Text,
			"give it more time, or look what the server is busy with", e.Cause)
	}
	return err
}

// Opened is what was found out first.
func (v *Survey) Opened() *Server { return v.opened }

// Again looks at the server once more, and warns of what has become worse.
func (v *Survey) Again(ctx context.Context) {
	v.last.Store(time.Now().UnixNano())
	s, err := Examine(ctx, v.client, v.key)
	v.missed.Store(err != nil)
	if err != nil {
		return // whoever calls the server next will hear it
	}
	old := v.now.Swap(s)
	if s.Level() < old.Level() {
		v.logger.Warn("ferry: an acknowledged publish survives less than before", "was", old.Level().String(),
			"is", s.Level().String(),
			"hint", "look at the append-only file of the server that is the primary now")
	}
	before := old.Findings()
	for i, f := range s.Findings() {
		if f.Severity == driver.SeverityError && before[i].Severity != driver.SeverityError {
			v.logger.Warn("ferry: "+f.Text, "hint", f.Hint)
		}
	}
}

// resurvey is how often at most a server is looked at again because a level is missing, or because it could not tell.
const resurvey = time.Second

// Refuse says why a publish cannot have a durability level now, or nil. What the server gave when it was opened may
// come back: that is ErrNotApplied.
func (v *Survey) Refuse(ctx context.Context, level driver.Durability) error {
	if level == 0 || slices.Contains(v.now.Load().Levels(), level) && !v.missed.Load() {
		return nil
	}
	last := v.last.Load()
	if time.Since(time.Unix(0, last)) > resurvey && v.last.CompareAndSwap(last, time.Now().UnixNano()) {
		v.Again(ctx)
	}
	levels := v.now.Load().Levels()
	if slices.Contains(levels, level) {
		return nil
	}
	kind, text := driver.ErrUnsupported, fmt.Sprintf("this server cannot give durability %q", level)
	if slices.Contains(v.opened.Levels(), level) {
		kind, text = driver.ErrNotApplied, fmt.Sprintf("this server does not give durability %q any more", level)
	}
	return driver.NewError(kind, text,
		fmt.Sprintf("it gives %v; see docs/redis.md for the settings of each level", levels), nil)
}

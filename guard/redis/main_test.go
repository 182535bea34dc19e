package redis_test

import (
	"context"
	"log/slog"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/internal/redistest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goredis.SetLogger(silence{}) // it tells of every connection that fails, and here many do
	goleak.VerifyTestMain(redistest.Main(m))
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

package redis_test

import (
	"context"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/internal/redistest"
)

func TestMain(m *testing.M) {
	goredis.SetLogger(silence{}) // it tells of every connection that fails, and here many do
	goleak.VerifyTestMain(redistest.Main(m))
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

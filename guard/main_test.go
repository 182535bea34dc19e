package guard_test

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/internal/redistest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(redistest.Main(m))
}

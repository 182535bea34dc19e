package alert_test

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	goleak.VerifyTestMain(kafkatest.Main(redistest.Main(m)))
}

package wecom_test

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/internal/kafkatest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	if child() {
		return
	}
	goleak.VerifyTestMain(kafkatest.Main(m))
}

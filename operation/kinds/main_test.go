package kinds_test

import (
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childURL) != "" {
		os.Exit(workInChild())
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	goleak.VerifyTestMain(m)
}

package deadletter_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childURL) != "" {
		os.Exit(replayInChild())
	}
	goleak.VerifyTestMain(m)
}

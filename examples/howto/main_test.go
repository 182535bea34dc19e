package howto_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openMemory(t *testing.T) (*ferry.Broker, func()) {
	t.Helper()
	b, err := memory.Open(t.Context(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b, func() { _ = b.Close(context.Background()) }
}

package cluster_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/faulty"
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

// virtual runs a test in virtual time, on a broker whose values can be made to fail.
func virtual(t *testing.T, f func(t *testing.T, b *ferry.Broker, d *faulty.Driver)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner, err := memory.New(context.Background(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := faulty.New(inner)
		b, err := ferry.New(d, ferry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close(context.Background()) })
		f(t, b, d)
	})
}

// pause waits until everything that can happen now has happened, then lets d pass.
func pause(d time.Duration) {
	synctest.Wait()
	time.Sleep(d)
	synctest.Wait()
}

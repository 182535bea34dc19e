package remote_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
)

func TestMain(m *testing.M) {
	serveIfAsked()
	goleak.VerifyTestMain(kafkatest.Main(redistest.Main(m)))
}

// remotely is what the capabilities of a broker are behind a gateway.
func remotely(c driver.Capabilities) driver.Capabilities {
	c.Driver, c.Local = "ferry", false
	return c
}

func TestDriverOnMemory(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return newStack(t, newMemory(t)) },
		Want: remotely(newMemory(t).Capabilities()),
		PlantRaw: func(ctx context.Context, d driver.Driver, topic string, raw []byte) error {
			return d.(*stack).backend.(*memory.Driver).StoreRaw(ctx, topic, raw)
		},
		Beside:  func(t testing.TB, d driver.Driver) driver.Driver { return d.(*stack).node.connect(t) },
		Virtual: true,
		Steps:   1_000,
	})
}

func newMemory(t testing.TB) *memory.Driver {
	t.Helper()
	d, err := memory.New(context.Background(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

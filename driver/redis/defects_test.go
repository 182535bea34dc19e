package redis_test

import (
	"testing"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/internal/redistest"
)

// A driver that is broken at the seam is found out on a real server too: the suite does not pass because of slowness or
// luck.
func TestDefectsAreCaught(t *testing.T) {
	drivertest.RunDefects(t, harness(redistest.Shared(t).URL(), capabilities(driver.InMemory, driver.InMemory)))
}

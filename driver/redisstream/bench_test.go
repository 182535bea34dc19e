package redisstream_test

import (
	"testing"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/internal/redistest"
)

func BenchmarkDriver(b *testing.B) {
	drivertest.Bench(b, harness(redistest.Shared(b).URL(), capabilities(driver.InMemory, driver.InMemory)))
}

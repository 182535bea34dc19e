package redisstream_test

import (
	"testing"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/internal/redistest"
)

// The whole suite on every topology and on the oldest and the newest server.

func TestDriverOnSentinel(t *testing.T) {
	t.Parallel()
	set := redistest.Sentinel(t, redistest.Options{Steady: true})
	drivertest.Run(t, harness(set.URL(), capabilities(driver.InMemory, driver.InMemory, driver.Replicated(1))))
}

func TestDriverOnCluster(t *testing.T) {
	t.Parallel()
	set := redistest.Cluster(t, redistest.Options{Steady: true})
	drivertest.Run(t, harness(set.URL(), capabilities(driver.InMemory, driver.InMemory, driver.Replicated(1))))
}

func TestDriverOnVersions(t *testing.T) {
	t.Parallel()
	for _, version := range redistest.Versions() {
		if version == "redis-7.0" {
			continue // everything else runs on it
		}
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := redistest.Single(t, redistest.Options{Version: version, AOF: "everysec"})
			drivertest.Run(t, harness(s.URL(), capabilities(driver.Written, driver.InMemory, driver.Written)))
		})
	}
}

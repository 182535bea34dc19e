//go:build torture

package rig

import (
	"testing"
	"time"
)

// Runs that planted bugs are caught by and that take too long for every test run. `make mutants` runs them one at a time.
func TestRedisTorture(t *testing.T) {
	for name, o := range map[string]Options{
		"step-clock": {Broker: "redisstream", Load: 6 * time.Second, Fault: Fault{
			Setup: setupClock, Schedule: "at 1s step-clock server 1 with 5s for 1500ms; at 4s step-clock server 1 with -5s for 1s; at 3s kill consumer 1",
		}},
		"power-cut": {Broker: "redis", Load: 10 * time.Second, Fault: Fault{
			Setup: setupPower, MayForget: true, Schedule: "at 500ms stop consumer all for 5s; at 4s power-cut server 1 for 1300ms",
		}},
	} {
		t.Run(name, func(t *testing.T) { inRealTime(t, o) })
	}
}

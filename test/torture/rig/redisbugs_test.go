//go:build torture

package rig

import (
	"os"
	"testing"
	"time"
)

// Runs that planted bugs are caught by and that take too long for every test run. `make mutants` runs them one at a
// time.
func TestRedisTorture(t *testing.T) {
	for name, o := range map[string]Options{
		"step-clock": {Broker: "redisstream", Load: 6 * time.Second, Fault: Fault{
			Setup: setupClock, Schedule: "at 1s step-clock server 1 with 5s for 1500ms; at 4s step-clock server 1 with -5s " +
				"for 1s; at 3s kill consumer 1",
		}},
		"power-cut": {Broker: "redis", Load: 10 * time.Second, Fault: Fault{
			Setup: setupPower, MayForget: true,
			Schedule: "at 500ms stop consumer all for 5s; at 4s power-cut server 1 for 1300ms",
		}},
		"term-twice": {Broker: "redis", Load: 5 * time.Second, Fault: Fault{
			NoDuplicates: true, Schedule: "every 500ms term-twice consumer any with 10ms; at 0s slow consumer all with 300ms " +
				"for 1h",
		}},
		"few-files": {Broker: "redis", Load: 6 * time.Second, Fault: Fault{
			Schedule: "at 1s limit-files consumer all with 3 for 2s; at 1500ms cut consumer all for 300ms",
		}},
		"little-cpu": {Broker: "redis", Load: 6 * time.Second, Fault: Fault{
			NoDuplicates: true, Schedule: "at 0s slow consumer all with 6s for 1h; at 500ms throttle-cpu consumer all with " +
				"0.1 for 5s",
		}},
		"low-bandwidth": {Broker: "redis", Load: 8 * time.Second, Fault: Fault{
			Schedule: "every 4s from 500ms throttle consumer all with 200ms for 3s; every 3s from 1s throttle producer any " +
				"with 10ms for 2s",
		}},
		"few-files-server": {Broker: "redis", Load: 8 * time.Second, Fault: Fault{
			Schedule: "at 1s limit-files server 1 with 3 for 4s; at 1200ms cut consumer all for 200ms",
		}},
		"little-cpu-server": {Broker: "redis", Load: 7 * time.Second, Fault: Fault{
			Schedule: "at 1s throttle-cpu server 1 with 0.002 for 5s",
		}},
		"little-memory": {Broker: "redis", Load: 6 * time.Second, Fault: Fault{
			Setup: setupLittleMemory, Schedule: "at 0s fail consumer all with 0.2 for 1h",
		}},
		"storm": {Broker: "redis", Load: 6 * time.Second, Fault: Fault{
			Setup: setupManyClients, Clients: 60, Schedule: "at 3s cut consumer all for 300ms",
		}},
		"upgrade": {Broker: "redis", Load: 5 * time.Second, Fault: Fault{
			Setup: setupOlder, Schedule: "at 2s term consumer 1; at 2s kill consumer 2; at 2500ms term consumer 3",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if o.Fault.Upgrades() {
				var err error
				if o.Older, err = BuildOlder(t.Context(), OlderCommit); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = os.RemoveAll(o.Older) }()
			}
			inRealTime(t, o)
		})
	}
}

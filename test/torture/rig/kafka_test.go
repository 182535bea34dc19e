//go:build torture

package rig

import (
	"testing"
	"time"
)

// A consumer is killed, another ends, handlers fail and a producer is cut off, on one real broker. `make torture
// BROKER=kafka` does it longer, and much else.
func TestKafkaSmoke(t *testing.T) {
	t.Parallel()
	r := inRealTime(t, Options{Broker: "kafka", Load: 4 * time.Second, Lease: kafkaSession, CommitIn: 5 * time.Second,
		ClockError: time.Second, Fault: Fault{
			Setup: setupSessions,
			Schedule: "at 0s fail consumer all with 0.2 for 1h; at 1s kill consumer 1; at 2s term consumer 2; at 3s cut " +
				"producer 1 for 200ms",
		}})
	if r.Crashes != 1 || r.Faults != 1 {
		t.Errorf("%d crashes and %d other faults", r.Crashes, r.Faults)
	}
}

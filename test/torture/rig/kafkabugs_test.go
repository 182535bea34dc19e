//go:build torture

package rig

import (
	"cmp"
	"testing"
	"time"
)

// Runs that bugs planted in the Kafka driver are caught by, each as short as it can be. `make mutants BROKER=kafka`
// runs them one at a time.
func TestKafkaTorture(t *testing.T) {
	for name, o := range map[string]Options{
		"none": {Load: 4 * time.Second, Fault: Fault{NoDuplicates: true}},
		"fail": {Load: 5 * time.Second, Fault: Fault{NoDuplicates: true,
			Schedule: "at 0s fail consumer all with 0.3 for 1h"}},
		"term": {Load: 8 * time.Second, Fault: Fault{NoDuplicates: true,
			Schedule: "every 1500ms from 1s term consumer any"}},
		"kill": {Load: 8 * time.Second, Fault: Fault{Schedule: "at 0s slow consumer all with 6s for 1h; at 0s fail " +
			"consumer all with 0.1 for 1h; at 5s kill consumer 1; at 6s kill consumer 2"}},
		"kill-brokers": {Broker: "kafka-cluster", Load: 10 * time.Second, Fault: Fault{Schedule: "at 5s freeze server 2 " +
			"for 1h; at 5s freeze server 3 for 1h; at 6500ms crash-all for 500ms"}},
		"zombie": {Load: 12 * time.Second, Fault: Fault{Schedule: "at 0s fail consumer all with 0.3 for 1h; at 3s stop " +
			"consumer 1 for 8s; at 3s stop consumer 2 for 8s"}},
	} {
		t.Run(name, func(t *testing.T) {
			o.Broker, o.Fault.Name, o.Fault.Setup = cmp.Or(o.Broker, "kafka"), name, setupSessions
			o.CommitIn, o.ClockError, o.Lease = 2*time.Second, 500*time.Millisecond, kafkaSession
			inRealTime(t, o)
		})
	}
}

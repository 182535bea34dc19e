package cluster

import (
	"context"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/monitor"
)

// Processes returns what the members tell of their handlers, for figures over all of them: see
// monitor.CollectorOptions. A process that has not joined is not among them, and a handler that a beat had no room for
// is left out.
func Processes(ctx context.Context, b *ferry.Broker) ([]monitor.Process, error) {
	members, err := Members(ctx, b)
	if err != nil {
		return nil, err
	}
	all := make([]monitor.Process, len(members))
	for i, m := range members {
		all[i] = monitor.Process{Name: m.Member(), Uptime: m.Uptime, Uses: monitor.Resources{CPU: m.CPU, Memory: m.Memory},
			Figures: m.Figures}
		for _, w := range m.Workers {
			for _, h := range w.Handlers {
				all[i].Tell(monitor.ActiveProcessors, float64(h.Keys))
				all[i].Tell(monitor.EmergencyWrites, float64(h.Emergencies))
				r := h.Recent
				all[i].Handlers = append(all[i].Handlers,
					monitor.Handler{Topic: h.Topic, Group: h.Group, Processes: 1, PerSecond: h.PerSecond,
						Handled: r.Handled, Failed: r.Failed, Retried: r.Retried, Timeouts: r.Timeouts,
						Latencies: r.Latencies, Waits: r.Waits})
			}
		}
	}
	return all, nil
}

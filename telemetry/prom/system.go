package prom

import (
	"strconv"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/monitor"
)

// ofSystem tells what a collector collected.
func (fs *families) ofSystem(s *sheet, f monitor.Figures) {
	up := 1.0
	if f.Err != nil {
		up = 0
	}
	s.add(fs.up, up)
	for i := range f.Queues {
		fs.ofQueue(s, &f.Queues[i])
	}
	for _, p := range f.Partitions {
		partition := strconv.Itoa(int(p.Partition))
		s.add(fs.lag, float64(p.Lag), p.Topic, p.Group, partition)
		s.add(fs.rebalances, float64(p.Moves), p.Topic, p.Group)
	}
	if f.Err == nil {
		fs.ofBackend(s, f.Backend)
	}
	fs.ofMachines(s, &f)
	fs.ofFailures(s, &f)
}

func (fs *families) ofQueue(s *sheet, q *monitor.Queue) {
	if q.Group == "" {
		s.add(fs.messages, float64(q.Delayed), q.Topic, "", string(driver.StateDelayed))
		s.addSome(fs.messages, float64(q.Held), q.Topic, "", string(driver.StateHeld))
		s.addSome(fs.messages, float64(q.Invalid), q.Topic, "", string(driver.StateInvalid))
		s.add(fs.events, float64(q.In), q.Topic, "", "published")
		s.addSome(fs.events, float64(q.Expired), q.Topic, "", "expired")
		s.addSome(fs.events, float64(q.Cancelled), q.Topic, "", "cancelled")
		if q.Full > 0 {
			s.add(fs.full, q.Full, q.Topic)
		}
		return
	}
	for _, n := range [...]struct {
		state driver.State
		n     int64
	}{{driver.StateReady, q.Ready}, {driver.StateInflight, q.Inflight}, {driver.StateWaiting, q.Waiting},
		{driver.StateDead, q.Dead}} {
		s.add(fs.messages, float64(n.n), q.Topic, q.Group, string(n.state))
	}
	for _, n := range [...]struct {
		event string
		n     uint64
	}{{"received", q.In}, {"acked", q.Acked}, {"retried", q.Retried}, {"died", q.Died}} {
		s.add(fs.events, float64(n.n), q.Topic, q.Group, n.event)
	}
	for _, n := range [...]struct {
		event string
		n     uint64
	}{{"dropped", q.Dropped}, {"expired", q.Expired}, {"cancelled", q.Cancelled}, {"redelivered", q.Redelivered}} {
		s.addSome(fs.events, float64(n.n), q.Topic, q.Group, n.event)
	}
	s.add(fs.oldest, q.Oldest.Seconds(), q.Topic, q.Group)
	s.add(fs.consumers, float64(q.Consumers), q.Topic, q.Group)
}

func (fs *families) ofBackend(s *sheet, u monitor.Usage) {
	s.add(fs.memory, float64(u.Memory))
	s.add(fs.memoryLimit, float64(u.MemoryLimit))
	s.add(fs.connections, float64(u.Connections))
	s.add(fs.disk, float64(u.Disk))
	s.add(fs.diskFree, float64(u.DiskFree))
}

func (fs *families) ofMachines(s *sheet, f *monitor.Figures) {
	s.add(fs.processes, float64(len(f.Processes)))
	s.add(fs.processCPU, f.Process.CPU)
	s.add(fs.processMemory, float64(f.Process.Memory))
	s.add(fs.hostCPU, f.Host.CPU)
	s.add(fs.hostMemory, float64(f.Host.Memory))
	s.add(fs.hostMemoryLimit, float64(f.Host.MemoryLimit))
}

func (fs *families) ofFailures(s *sheet, f *monitor.Figures) {
	for _, status := range []monitor.Status{monitor.Healthy, monitor.Degraded, monitor.Unhealthy} {
		is := 0.0
		if f.Health.Status == status {
			is = 1
		}
		s.add(fs.health, is, string(status))
	}
	s.add(fs.uptime, f.Failures.Uptime.Seconds())
	s.add(fs.failures, float64(f.Failures.Count))
	s.add(fs.mtbf, f.Failures.MTBF.Seconds())
	s.add(fs.mttr, f.Failures.MTTR.Seconds())
	last := 0.0
	if !f.Failures.Last.IsZero() {
		last = float64(f.Failures.Last.UnixMilli()) / 1000
	}
	s.add(fs.lastFailure, last)
}

package prom

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/spool"
	"github.com/ferrymq/ferry/worker"
)

// ofWorker tells what a worker counted.
func (fs *families) ofWorker(s *sheet, w worker.Stats) {
	s.add(fs.handlers, float64(w.Running+w.Zombies), "active")
	s.add(fs.handlers, float64(max(0, w.Concurrency-w.Running-w.Zombies)), "idle")
	for i := range w.Consumers {
		c := &w.Consumers[i]
		for result, n := range map[string]uint64{"ack": c.Acked, "retry": c.Retried, "dead": c.Dead, "drop": c.Dropped,
			"release": c.Released} {
			s.add(fs.processed, float64(n), c.Topic, c.Group, result)
		}
		for _, f := range c.Failures {
			s.add(fs.failed, float64(f.Retried+f.Dead), c.Topic, c.Group, string(f.Reason))
			if f.Dead > 0 {
				s.add(fs.deadLetters, float64(f.Dead), c.Topic, c.Group, string(f.Reason))
			}
		}
		for cause, n := range c.Redelivered {
			s.add(fs.redeliveries, float64(n), c.Topic, c.Group, cause)
		}
		s.addHistogram(fs.duration, c.Latencies, c.Topic, c.Group)
		s.addHistogram(fs.wait, c.Waits, c.Topic, c.Group)
		s.add(fs.leasesLost, float64(c.LeasesLost), c.Topic, c.Group)
		s.add(fs.refused, float64(c.Refused), c.Topic, c.Group)
		s.add(fs.emergencies, float64(c.Emergencies), c.Topic, c.Group)
		s.add(fs.running, float64(c.Running), c.Topic, c.Group)
		s.add(fs.keys, float64(c.Lanes), c.Topic, c.Group)
	}
}

func (fs *families) ofRecoverer(s *sheet, r deadletter.RecovererStats) {
	s.add(fs.recovered, float64(r.Recovered))
	s.add(fs.unrecoverable, float64(r.Unrecoverable))
	s.add(fs.recoveryWaiting, float64(r.Waiting+r.Blocked))
	s.add(fs.reviewPending, float64(r.AwaitingReview))
}

func (fs *families) ofLock(s *sheet, name string, l cluster.LockStats) {
	s.add(fs.lockAcquired, float64(l.Acquired), name)
	s.add(fs.lockFailed, float64(l.Failed), name)
	s.add(fs.lockExpired, float64(l.Expired), name)
	s.addHold(fs.lockHold, l.Released, l.Held.Seconds(), name)
}

func (fs *families) ofSpool(s *sheet, d spool.Stats) {
	s.add(fs.spooled, float64(d.Spooled))
	s.add(fs.spoolWaits, float64(d.Messages))
	s.add(fs.spoolKeys, float64(d.Keys))
	s.add(fs.spoolFailed, float64(d.Failures))
	s.add(fs.spoolLast, seconds(d.LastSpooled))
}

// partitions counts what was settled by partition.
type partitions struct {
	counts sync.Map // partitionName to *atomic.Uint64
	known  atomic.Int64
}

type partitionName struct {
	topic, group string
	partition    int32
}

// maxPartitions bounds how many are told apart: topics with many partitions would have a series for each and each
// group.
const maxPartitions = 10_000

// settled is told of every outcome.
func (p *partitions) settled(_ context.Context, e ferry.Event) {
	if e.Err != nil || e.Delivery == nil {
		return
	}
	name := partitionName{e.Topic, e.Group, e.Delivery.Ref.Partition}
	n, ok := p.counts.Load(name)
	if !ok {
		if p.known.Add(1) > maxPartitions {
			p.known.Add(-1)
			name = partitionName{other, other, -1}
		}
		n, _ = p.counts.LoadOrStore(name, new(atomic.Uint64))
	}
	n.(*atomic.Uint64).Add(1)
}

func (p *partitions) collect(s *sheet, fs *families) {
	p.counts.Range(func(name, n any) bool {
		at := name.(partitionName)
		partition := other
		if at.partition >= 0 {
			partition = strconv.Itoa(int(at.partition))
		}
		s.add(fs.partitionProcessed, float64(n.(*atomic.Uint64).Load()), at.topic, at.group, partition)
		return true
	})
}

package delay

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// tierPartition is one that this process owns.
type tierPartition struct {
	id      int32
	tier    int
	done    *offsets.Set
	queue   []*Delayed // in order; only the head may leave
	bytes   int        // of queue
	paused  bool
	cut     bool  // it goes back: more was fetched than it takes
	dropped int64 // the last of what it did not take, which comes again; 0: none
	missed  int   // how often it did not
	lost    bool
	cutBy   *kgo.Record // lies where another was read before: the log has lost its end
	dirty   bool
	trimmed int64

	out *cluster.Transactor
	// doubt says that a transaction is under way, or that nobody knows how it ended: nothing else may be committed.
	doubt bool
}

// Bounds of what waits in memory, for each partition and for all timers. Beyond them messages are late, never early. A
// partition that has reached its bound is not fetched any more. What is fetched already may exceed it; what would do so
// by as much again, because it was compressed, is fetched again later.
const (
	maxQueued      = 2000
	maxQueuedBytes = 2 << 20
	maxPolled      = 1000
	maxTimers      = 50_000
	maxTimersBytes = 64 << 20
	sweepEvery     = 10 * time.Second
)

// poll feeds the queues, and stops fetching for those that are full.
func (w *firer) poll(ctx context.Context) {
	for {
		fetches := w.cl.PollRecords(ctx, maxPolled)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			w.cl.AllowRebalance()
			return
		}
		w.fetching.Lock()
		w.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			switch p := w.parts[r.Partition]; {
			case p == nil || p.lost || p.cutBy != nil:
			case r.Offset >= p.done.Next:
				w.feed(p, r)
			case p.done.Overlaid(r):
				p.cutBy = r
			}
		})
		full, anew, back := w.turn()
		w.mu.Unlock()
		name := w.d.cluster.DelayTopic()
		if len(full) > 0 {
			w.cl.PauseFetchPartitions(map[string][]int32{name: full})
		}
		if len(back) > 0 { // nobody takes partitions away before AllowRebalance
			w.cl.ResumeFetchPartitions(map[string][]int32{name: anew})
			w.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{name: back})
		}
		w.fetching.Unlock()
		w.cl.AllowRebalance()
		w.ring.Give()
		if fetches.Err() != nil && cluster.Pause(ctx, cluster.FetchWait) != nil {
			return
		}
	}
}

// turn decides how fetching goes on: which partitions have reached their bound, which begin anew since their logs have
// lost their ends, and where those go on that go back. What is being fired of a log that was cut fires again.
func (w *firer) turn() (full, anew []int32, back map[int32]kgo.EpochOffset) {
	back = map[int32]kgo.EpochOffset{}
	for id, p := range w.parts {
		if by := p.cutBy; by != nil {
			p.lost = true
			p = &tierPartition{id: id, tier: p.tier, done: p.done.Clone(), dirty: true, trimmed: p.trimmed, out: p.out,
				doubt: p.doubt, cut: true}
			p.done.Cut(by.Offset)
			w.parts[id] = p
			anew = append(anew, id)
		}
		if !p.paused && (len(p.queue) >= maxQueued || p.bytes >= maxQueuedBytes) {
			p.paused = true
			full = append(full, id)
		}
		if p.cut {
			p.cut = false
			back[id] = kgo.EpochOffset{Epoch: -1, Offset: p.done.Next}
		}
	}
	return full, anew, back
}

// passedOver reports whether what did not fit was not fetched again. It is asked for three times: somebody may have
// deleted it.
func (p *tierPartition) passedOver(offset int64) bool {
	if p.dropped == 0 || offset <= p.dropped {
		return false
	}
	p.missed++
	return p.missed <= 3
}

func (w *firer) feed(p *tierPartition, r *kgo.Record) {
	if p.cut = p.cut || p.bytes >= 2*maxQueuedBytes || p.passedOver(r.Offset); p.cut {
		if p.missed == 0 {
			p.dropped = r.Offset
		}
		return
	}
	p.dropped, p.missed = 0, 0
	p.done.SkipTo(r.Offset)
	p.done.Next = r.Offset + 1
	p.done.Read(r)
	if p.done.Has(r.Offset) {
		p.dirty = true
		return
	}
	x, ok := readLater(r)
	if !ok { // a marker of a transaction: nobody but us writes here
		p.done.Set(r.Offset)
		p.dirty = true
		return
	}
	x.p, x.leave = p, r.Timestamp.Add(tierWait(p.tier))
	p.queue = append(p.queue, x)
	p.bytes += x.size()
}

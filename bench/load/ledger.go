package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

const shards = 16

// Ledger counts what was handled, message by message, so that a run can tell whether all came back, once and unharmed.
type Ledger struct {
	bodies  *Bodies
	lane    uint64 // sequence numbers each publisher may use
	seen    []uint32
	handled [shards]paddedCounter
	corrupt atomic.Int64
	// published is how many messages each publisher has published; set by Published.
	published []int
}

// paddedCounter fills a cache line, so that handlers on several cores do not share one.
type paddedCounter struct {
	n atomic.Int64
	_ [56]byte
}

// NewLedger has room for each of publishers to publish most messages.
func NewLedger(b *Bodies, publishers, most int) *Ledger {
	return &Ledger{bodies: b, lane: uint64(most), seen: make([]uint32, publishers*most),
		published: make([]int, publishers)}
}

// Seq returns the sequence number of message i of a publisher.
func (l *Ledger) Seq(publisher, i int) uint64 { return uint64(publisher)*l.lane + uint64(i) }

// Published notes that a publisher has published its messages 0 to n-1. Each publisher notes it itself.
func (l *Ledger) Published(publisher, n int) { l.published[publisher] = n }

// Total is how many messages were published.
func (l *Ledger) Total() int {
	n := 0
	for _, p := range l.published {
		n += p
	}
	return n
}

// Handled is how many messages came back so far, repeats and corrupt ones included.
func (l *Ledger) Handled() int {
	n := int64(0)
	for i := range l.handled {
		n += l.handled[i].n.Load()
	}
	return int(n)
}

// Note checks a body off.
func (l *Ledger) Note(body []byte) {
	seq, ok := l.bodies.Check(body)
	if ok && seq < uint64(len(l.seen)) {
		atomic.AddUint32(&l.seen[seq], 1)
	} else {
		l.corrupt.Add(1)
	}
	l.handled[seq%shards].n.Add(1)
}

// Wait waits until n messages came back.
func (l *Ledger) Wait(ctx context.Context, n int) error {
	for l.Handled() < n {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d messages came back: %w", l.Handled(), n, context.Cause(ctx))
		case <-time.After(200 * time.Microsecond):
		}
	}
	return nil
}

// Verdict tells what became of the published messages.
type Verdict struct {
	Published int `json:"published"`
	Lost      int `json:"lost,omitempty"`
	Repeated  int `json:"repeated,omitempty"`
	// Corrupt came back changed, or were never published.
	Corrupt int `json:"corrupt,omitempty"`
	// Unchecked had not come back when a run ended that was to check a part only.
	Unchecked int `json:"unchecked,omitempty"`
}

// Partial is the verdict of a run that ended before all could come back: what is missing is not known to be lost.
func (v Verdict) Partial() Verdict {
	v.Unchecked, v.Lost = v.Lost, 0
	return v
}

// Err is nil if every message came back exactly once and unharmed.
func (v Verdict) Err() error {
	if v.Lost == 0 && v.Repeated == 0 && v.Corrupt == 0 {
		return nil
	}
	return fmt.Errorf("of %d messages %d were lost, %d repeated, %d corrupt", v.Published, v.Lost, v.Repeated, v.Corrupt)
}

// Verdict compares what came back with what was published.
func (l *Ledger) Verdict() Verdict {
	v := Verdict{Published: l.Total(), Corrupt: int(l.corrupt.Load())}
	for p, n := range l.published {
		lane := l.seen[uint64(p)*l.lane : uint64(p+1)*l.lane]
		for i := range lane {
			times := int(atomic.LoadUint32(&lane[i]))
			switch {
			case i >= n:
				v.Corrupt += times
			case times == 0:
				v.Lost++
			default:
				v.Repeated += times - 1
			}
		}
	}
	return v
}

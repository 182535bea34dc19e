package disk

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Pebble drops tables whose records were all removed in one piece, but now and then forgets some, until something else
// is written to their range. Of a topic that was drained that is never. So what was removed is compacted a while later:
// by then there is little left to do.

const (
	reclaimAfter = 5 * time.Second
	reclaimFrom  = 8 << 20 // bytes of tables: with less there is nothing to gain
)

// reclaimer gives the disk back that removed ranges took.
type reclaimer struct {
	db     *pebble.DB
	space  *space
	cancel context.CancelFunc
	wait   sync.WaitGroup
	wake   chan struct{}

	mu     sync.Mutex
	ranges map[string]span // by topic: all that lies in it is gone
}

type span struct{ from, to []byte }

func newReclaimer(db *pebble.DB, space *space) *reclaimer {
	ctx, cancel := context.WithCancel(context.Background())
	r := &reclaimer{db: db, space: space, cancel: cancel, wake: make(chan struct{}, 1), ranges: map[string]span{}}
	r.wait.Go(func() { r.run(ctx) })
	return r
}

// note notes ranges that were removed. Those of a topic follow each other.
func (r *reclaimer) note(removed []span) {
	r.mu.Lock()
	for _, s := range removed {
		const prefix = 5
		if len(s.from) <= prefix {
			continue // a whole topic: others may lie between it and the next
		}
		topic := string(s.from[:prefix])
		if old, ok := r.ranges[topic]; ok {
			s.from = old.from
		}
		r.ranges[topic] = s
	}
	r.mu.Unlock()
	signal(r.wake)
}

func (r *reclaimer) run(ctx context.Context) {
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(reclaimAfter):
		case <-ctx.Done():
			return
		}
		for _, s := range r.take() {
			if total := r.db.Metrics().Total(); total.TablesSize < reclaimFrom || ctx.Err() != nil || r.space.tight() {
				break
			}
			_ = r.db.Compact(ctx, s.from, s.to, false) // what fails stays as it is; a failed write is told to the logger
		}
	}
}

// take returns the ranges noted since the last time.
func (r *reclaimer) take() []span {
	r.mu.Lock()
	defer r.mu.Unlock()
	spans := make([]span, 0, len(r.ranges))
	for _, s := range r.ranges {
		spans = append(spans, s)
	}
	clear(r.ranges)
	slices.SortFunc(spans, func(a, b span) int { return slices.Compare(a.from, b.from) })
	return spans
}

// close ends the goroutine.
func (r *reclaimer) close() {
	r.cancel()
	r.wait.Wait()
}

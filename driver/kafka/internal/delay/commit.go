package delay

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// keep commits what fired every now and then, and cleans up behind.
func (w *firer) keep(ctx context.Context) {
	swept := time.Now()
	cluster.Every(ctx, cluster.CommitEvery, func() {
		if err := w.commit(ctx); err != nil { // tried again with the next tick
			w.NoteGeneration(w.cl)
		}
		if time.Since(swept) > sweepEvery {
			swept = time.Now()
			w.trim(ctx)
			w.mu.Lock()
			mine := w.parts[0] != nil
			w.mu.Unlock()
			if mine {
				w.sweep(ctx, w.d.cluster.Now())
			}
		}
	})
}

// commit stores which of the owned partitions' messages have left.
func (w *firer) commit(ctx context.Context) error {
	w.commits.Lock() // an older commit must not overtake a newer one; nothing else waits for this lock
	defer w.commits.Unlock()
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = w.d.cluster.DelayTopic()
	var sent []*tierPartition
	w.mu.Lock()
	req := w.CommitAs(w.d.cluster.DelayTopic())
	for _, p := range w.parts {
		if p.dirty && !p.doubt {
			p.dirty = false
			sent = append(sent, p)
			t.Partitions = append(t.Partitions, cluster.CommitOf(p.id, p.done, p.done.Encode(offsets.MaxMetadata)))
		}
	}
	w.mu.Unlock()
	if len(sent) == 0 {
		return nil
	}
	req.Topics = append(req.Topics, t)
	err := cluster.SendCommit(ctx, w.d.cluster.Client, req)
	if err != nil {
		w.mu.Lock()
		for _, p := range sent {
			p.dirty = true
		}
		w.mu.Unlock()
	}
	return err
}

// trim deletes what all have left behind.
func (w *firer) trim(ctx context.Context) {
	low := map[int32]int64{}
	w.mu.Lock()
	for id, p := range w.parts {
		if !p.dirty && p.done.Base > p.trimmed {
			low[id], p.trimmed = p.done.Base, p.done.Base
		}
	}
	w.mu.Unlock()
	_ = w.d.cluster.DeleteBefore(ctx, w.d.cluster.DelayTopic(), low) // only room: tried again when more has left
}

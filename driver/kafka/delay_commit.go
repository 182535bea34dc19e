package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// keep commits what fired every now and then, and cleans up behind.
func (w *delays) keep(ctx context.Context) {
	defer w.tasks.Done()
	tick := time.NewTicker(commitEvery)
	defer tick.Stop()
	swept := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := w.commit(ctx); err != nil { // tried again with the next tick
			w.noteGeneration(w.cl)
		}
		if time.Since(swept) > sweepEvery {
			swept = time.Now()
			w.trim(ctx)
			w.mu.Lock()
			mine := w.parts[0] != nil
			w.mu.Unlock()
			if mine {
				w.sweep(ctx, w.d.now())
			}
		}
	}
}

// commit stores which of the owned partitions' messages have left.
func (w *delays) commit(ctx context.Context) error {
	w.commits.Lock() // an older commit must not overtake a newer one; nothing else waits for this lock
	defer w.commits.Unlock()
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = w.d.delayTopic()
	var sent []*tierPartition
	w.mu.Lock()
	req := w.commitAs(w.d.delayTopic())
	for _, p := range w.parts {
		if p.dirty && !p.doubt {
			p.dirty = false
			sent = append(sent, p)
			t.Partitions = append(t.Partitions, commitOf(p.id, p.done, p.done.encode(maxMetadata)))
		}
	}
	w.mu.Unlock()
	if len(sent) == 0 {
		return nil
	}
	req.Topics = append(req.Topics, t)
	err := sendCommit(ctx, w.d.client, req)
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
func (w *delays) trim(ctx context.Context) {
	var offsets kadm.Offsets
	w.mu.Lock()
	for id, p := range w.parts {
		if !p.dirty && p.done.base > p.trimmed {
			p.trimmed = p.done.base
			offsets.AddOffset(w.d.delayTopic(), id, p.done.base, -1)
		}
	}
	w.mu.Unlock()
	if len(offsets) > 0 {
		_, _ = w.d.admin.DeleteRecords(ctx, offsets) // only room: tried again when more has left
	}
}

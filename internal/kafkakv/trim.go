package kafkakv

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// nextLimit is at which weight of the log a snapshot is due. It is not worth its room before the log has twice its
// size, and processes that follow the same log should not all write one at the same time.
func (p *partition) nextLimit(size int) int {
	every := max(p.k.o.SnapshotEvery, 2*size)
	return every + mathrand.IntN(every)
}

// snapshot writes the state into the log, reads it back, and lets the begin of the log go. The snapshot before stays,
// and all that was written since: who reads a little behind the others need not begin anew.
func (p *partition) snapshot(ctx context.Context) {
	defer p.leave()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.snapshots = false
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p.mu.Lock()
	p.users++
	if p.state == nil || !p.state.known {
		p.mu.Unlock()
		return
	}
	x := p.state.image()
	p.mu.Unlock()
	id := rand.Text()
	rs, size := chunkRecords(id, p.k.o.Topic, p.id, x.chunks())
	w := p.expect(id)
	p.mu.Lock()
	p.limit = p.state.weight + size + p.nextLimit(size) // if it fails: not at once
	p.mu.Unlock()
	for _, r := range rs {
		p.k.o.Client.Produce(context.WithoutCancel(ctx), r, func(_ *kgo.Record, err error) {
			if err != nil {
				p.stored(id, -1, err)
			}
		})
	}
	if p.verdict(ctx, w).Err != nil {
		return // only room: another one is written later
	}
	p.mu.Lock()
	before := int64(0)
	if p.state != nil {
		before = p.state.before
	}
	p.mu.Unlock()
	if before > 0 {
		var offsets kadm.Offsets
		offsets.AddOffset(p.k.o.Topic, p.id, before, -1)
		_, _ = p.k.admin.DeleteRecords(ctx, offsets) // tried again with the next one
	}
}

package consumer

import "context"

// TrimLogs deletes the beginning of owned retry logs, before the oldest record that is still needed, so that the next
// owner reads little.
func (d *Groups) TrimLogs(ctx context.Context) error {
	for _, m := range d.all() {
		low := map[int32]int64{}
		var grown []*partition
		m.mu.Lock()
		for id, p := range m.parts {
			if at := p.oldestNeeded(); at > p.trimmed && !p.dirty {
				low[id], p.trimmed = at, at
			}
			if p.tally.Logged-p.ownedFrom > logGrowth {
				grown = append(grown, p)
			}
		}
		m.mu.Unlock()
		for _, p := range grown {
			if err := p.announce(ctx); err != nil {
				return err
			}
		}
		if err := d.cluster.DeleteBefore(ctx, m.retryName, low); err != nil {
			return err
		}
	}
	return nil
}

// logGrowth is how many records of a retry log make a new announcement of ownership worth while, so that what is before
// it can go.
const logGrowth = 10_000

// announce says again in the retry log who owns it.
func (p *partition) announce(ctx context.Context) error {
	r := p.takeOver(nil)[0]
	if err := p.m.d.cluster.Produce(ctx, r); err != nil {
		return err
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.ownedFrom = r.Offset
	return nil
}

// oldestNeeded is the first offset of the retry log that is needed: of an item, or of our own announcement of
// ownership. What ended, and what stands in for a commit, is needed until that is accepted.
func (p *partition) oldestNeeded() int64 {
	if len(p.ended) > 0 || p.standsIn != "" {
		return p.trimmed
	}
	at := p.ownedFrom
	for it := range p.items.all() {
		if it.logKey != "" {
			at = min(at, it.logOffset)
		}
	}
	return at
}

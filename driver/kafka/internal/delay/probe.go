package delay

import "context"

// QueuedBytes is what the fullest partition of the tiers has in memory in this process, for tests.
func (d *Delays) QueuedBytes() (most int) {
	w := d.firer.Load()
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.parts {
		most = max(most, p.bytes)
	}
	return most
}

// CommitNow does what is done every 200 ms, for tests.
func (d *Delays) CommitNow(ctx context.Context) { _ = d.firer.Load().commit(ctx) }

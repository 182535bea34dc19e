package kafka

import "context"

// Unparked is up to which offset a member of this process has settled or parked everything, over all partitions.
func (d *Driver) Unparked(topic, group string) (sum int64) {
	d.mu.Lock()
	m := d.members[d.groupID(topic, group)]
	d.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.parts {
		sum += p.done.base
	}
	return sum
}

// Spilled counts the messages of a member of this process whose content is only in the side log.
func (d *Driver) Spilled(topic, group string) (n int) {
	d.mu.Lock()
	m := d.members[d.groupID(topic, group)]
	d.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.parts {
		for it := range p.items.all() {
			if it.spilled {
				n++
			}
		}
	}
	return n
}

// Trim does what is done every 30 s.
func (d *Driver) Trim(ctx context.Context) error { return d.trimAll(ctx) }

// Revive does what is done every 12 h.
func (d *Driver) Revive(ctx context.Context) error { return d.keepAlive(ctx) }

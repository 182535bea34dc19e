package consumer

import (
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// current is the tally of an owned partition now.
func (p *partition) current() offsets.Tally {
	t := p.tally
	t.Ready, t.Inflight, t.Waiting = 0, 0, 0
	for it := range p.items.all() {
		switch it.state {
		case ready:
			t.Ready++
		case inflight:
			t.Inflight++
		case waiting:
			t.Waiting++
		case aside: // for the next owner it is what it was
			if it.due.IsZero() {
				t.Ready++
			} else {
				t.Waiting++
			}
		}
	}
	t.Ready += uint64(len(p.pending))
	t.Next = p.done.Next
	return t
}

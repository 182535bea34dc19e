package consumer

import "github.com/ferrymq/ferry/driver/kafka/internal/offsets"

// tallied is as what an item is counted in its partition. The counts follow every change of state, so that a commit
// need not look at all items: it is made five times a second, under the lock that claims and settlements need.
type tallied uint8

const (
	asNothing tallied = iota
	asReady
	asInflight
	asWaiting
	talliedAs
)

// count is told that the state of an item has changed.
func (p *partition) count(it *Item) {
	p.counts[it.tallied]--
	switch {
	case it.state == gone:
		it.tallied = asNothing
	case it.state == inflight:
		it.tallied = asInflight
	case it.state == waiting || it.state == aside && !it.due.IsZero(): // for the next owner it is what it was
		it.tallied = asWaiting
	default:
		it.tallied = asReady
	}
	p.counts[it.tallied]++
}

// current is the tally of an owned partition now.
func (p *partition) current() offsets.Tally {
	t := p.tally
	t.Ready, t.Inflight, t.Waiting = uint64(p.counts[asReady]+len(p.pending)), uint64(p.counts[asInflight]),
		uint64(p.counts[asWaiting])
	t.Next = p.done.Next
	return t
}

package consumer

import (
	"iter"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// tenure is how this process has the partitions of a member: it owns them, or has read them as others left them. What
// differs between the two is here, and nowhere else.
type tenure interface {
	// left reports whether a commit says that nothing else of a partition was delivered.
	left(p *partition) bool
	// named are the items that a commit may name, and listed is in which list one belongs, or 0.
	named(p *partition) iter.Seq[*Item]
	listed(p *partition, it *Item, at offsets.Location) byte
	// recalls reports whether items are told what became of them with the last owner.
	recalls() bool
	// lost is told of an item that was lost with the last owner, and resolve of one whose record says that it had begun.
	lost(p *partition, it *Item)
	resolve(p *partition, it *Item)
	// spills reports whether bodies are kept out of memory when there are too many.
	spills() bool
}

// ownership is that of a member of the group.
type ownership struct{}

func (ownership) left(p *partition) bool { return p.leaving }

// named forgets those that need not be named any more.
func (ownership) named(p *partition) iter.Seq[*Item] {
	p.delivered = slices.DeleteFunc(p.delivered, func(it *Item) bool {
		over := p.items.of(it.key()) != it || it.claimed == nil && p.m.tenure.listed(p, it, it.location()) == 0
		it.delivered = !over
		return over
	})
	return slices.Values(p.delivered)
}

func (ownership) listed(p *partition, it *Item, at offsets.Location) byte {
	switch {
	case it.state == inflight && it.claimed != nil && (it.claimed.delivery != nil ||
		!p.leaving): // it may be delivered before the next commit
		return offsets.LeasedPart
	case at.Retry && it.storedCause == it.cause:
		return 0
	case it.cause == driver.CauseReleased:
		return offsets.ReturnedPart
	case it.cause == driver.CauseRebalance:
		return offsets.MovedPart
	}
	return 0
}

func (ownership) recalls() bool { return true }

func (ownership) lost(p *partition, it *Item) {
	p.tally.Redelivered++
	p.m.saver.suspect(it)
}

func (ownership) resolve(p *partition, it *Item) {
	it.setBegun("")
	it.unsaved, it.saving = false, true // until takeOver has stored it
	p.resolved[it.logKey] = it
}

func (ownership) spills() bool { return true }

// snapshot is that of who looks at a group without joining: what the last commit says of deliveries stays as it is.
type snapshot struct {
	watched bool // others consume the group: what they hold is theirs; see showLeased
}

func (snapshot) left(p *partition) bool { return p.done.Clean }

func (snapshot) named(p *partition) iter.Seq[*Item] { return p.items.all() }

func (snapshot) listed(p *partition, _ *Item, at offsets.Location) byte { return p.done.Before[at] }

func (s snapshot) recalls() bool { return !s.watched }

func (snapshot) lost(*partition, *Item) {}

func (snapshot) resolve(*partition, *Item) {}

func (snapshot) spills() bool { return false }

package consumer

import (
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// metadata writes what is committed beside the base of a partition.
func (p *partition) metadata() string {
	text, _ := p.compose("", p.done, nil, offsets.ListRoom)
	return text
}

// compose writes the preface, the lists and the done-set, which leaves some room to the lists. It also returns what was
// given back and is not named for want of room.
func (p *partition) compose(tag string, done *offsets.Set, ending map[*Item]bool, room int) (text string,
	unnamed []*Item) {
	text = p.preface(tag)
	beyond := done.Encode(offsets.MaxMetadata - len(text) - room)
	lists, unnamed := p.deliveries(ending, offsets.MaxMetadata-len(text)-len(beyond))
	return text + lists + beyond, unnamed
}

// metadataWith is metadata with a tag, for when some items are settled. It reports whether all their offsets fit in;
// what is leased is left out for them.
func (p *partition) metadataWith(tag string, done *offsets.Set, ending map[*Item]bool, settled []int64) (string, bool) {
	text, _ := p.compose(tag, done, ending, offsets.ListRoom)
	if !done.Told(text, settled) {
		text, _ = p.compose(tag, done, ending, 0)
	}
	return text, done.Told(text, settled)
}

// current is the tally of an owned partition now.
func (p *partition) current() offsets.Tally {
	t := p.tally
	t.Ready, t.Inflight, t.Waiting = uint64(p.counts[ready]+len(p.pending)), uint64(p.counts[inflight]),
		uint64(p.counts[waiting])
	t.Next = p.done.Next
	return t
}

// preface is what comes first: counts, a tag, what is a replay, and whether the owner leaves.
func (p *partition) preface(tag string) string {
	text := p.current().String() + tag
	if p.done.Replay > p.done.Base {
		text += fmt.Sprintf("%c%d;", offsets.ReplayPart, p.done.Replay)
	}
	if p.over || p.m.Visit && p.done.Clean {
		text += offsets.CleanText
	}
	return text
}

// deliveries lists what is leased or was given back, but for items that are about to be settled, in so many characters.
// What is leased comes first; it also returns what was given back and is not in the list.
func (p *partition) deliveries(ending map[*Item]bool, limit int) (text string, unnamed []*Item) {
	lists, returned := map[byte][]int64{}, map[offsets.Location]*Item{}
	list := func(at offsets.Location, kind byte) {
		if at.Retry {
			kind |= 0x20
		}
		lists[kind] = append(lists[kind], at.Offset)
	}
	for at, kind := range p.done.Before { // what is not fetched yet, or only looked at, stays as it was
		if p.m.Visit && (at.Retry || !p.done.Has(at.Offset)) || !at.Retry && at.Offset >= p.done.Next {
			list(at, kind)
		}
	}
	for _, it := range p.named() {
		at, kind := it.location(), p.listed(it)
		if kind == 0 || ending[it] || !at.Retry && p.done.Has(at.Offset) {
			continue
		}
		if kind != offsets.LeasedPart {
			returned[at] = it
		}
		list(at, kind)
	}
	for _, kind := range []byte(offsets.ListParts) {
		part, left := offsets.WriteOffsets(kind, lists[kind], limit-len(text))
		text += part
		for _, off := range left {
			if it := returned[offsets.Location{Retry: kind >= 'a', Offset: off}]; it != nil {
				unnamed = append(unnamed, it)
			}
		}
	}
	return text, unnamed
}

// deliver notes that commits may have to name an item: it is claimed, or came back with the last owner.
func (p *partition) deliver(it *Item) {
	if !it.delivered && !p.m.Visit {
		it.delivered = true
		p.delivered = append(p.delivered, it)
	}
}

// named are the items that a commit may name. It forgets those that need not be named any more.
func (p *partition) named() []*Item {
	p.delivered = slices.DeleteFunc(p.delivered, func(it *Item) bool {
		over := p.items.of(it.offset, it.logKey) != it || it.claimed == nil && p.listed(it) == 0
		it.delivered = !over
		return over
	})
	return p.delivered
}

// listed is in which list of a commit an item belongs, or 0.
func (p *partition) listed(it *Item) byte {
	switch {
	case it.claimed != nil && (it.claimed.delivered || !p.over): // it may be delivered before the next commit
		return offsets.LeasedPart
	case it.logKey != "" && it.storedCause == it.cause:
		return 0
	case it.cause == driver.CauseReleased:
		return offsets.ReturnedPart
	case it.cause == driver.CauseRebalance:
		return offsets.MovedPart
	}
	return 0
}

// location is where an item is stored.
func (it *Item) location() offsets.Location {
	if it.logKey != "" {
		return offsets.Location{Retry: true, Offset: it.logOffset}
	}
	return offsets.Location{Offset: it.offset}
}

package consumer

import (
	"fmt"

	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// metadata writes what is committed beside the base of a partition.
func (p *partition) metadata() string {
	text, _ := p.compose("", p.done, nil)
	return text
}

// compose writes the preface, the lists and the done-set. It also returns what was given back and is not named for want
// of room.
func (p *partition) compose(tag string, done *offsets.Set, ending map[*Item]bool) (text string, unnamed []*Item) {
	text = p.preface(tag)
	beyond := done.Encode(offsets.MaxMetadata - len(text) - offsets.ListRoom)
	lists, unnamed := p.deliveries(ending, offsets.MaxMetadata-len(text)-len(beyond))
	return text + lists + beyond, unnamed
}

// metadataWith is metadata with a tag, for when some items are settled. It reports whether all their offsets fit in;
// what is held is left out for them.
func (p *partition) metadataWith(tag string, done *offsets.Set, ending map[*Item]bool, settled []int64) (string, bool) {
	text, _ := p.compose(tag, done, ending)
	if done.Told(text, settled) {
		return text, true
	}
	text = p.preface(tag)
	text += done.Encode(offsets.MaxMetadata - len(text))
	return text, done.Told(text, settled)
}

// preface is what comes first: counts, a tag, what is a replay, and whether the owner leaves.
func (p *partition) preface(tag string) string {
	text := p.current().String() + tag
	if p.done.Replay > p.done.Base {
		text += fmt.Sprintf("%c%d;", offsets.ReplayPart, p.done.Replay)
	}
	if p.m.tenure.left(p) {
		text += offsets.CleanText
	}
	return text
}

// deliveries lists what is held or was given back, but for items that are about to be settled, in so many characters.
// What is held comes first; it also returns what was given back and is not in the list.
func (p *partition) deliveries(ending map[*Item]bool, limit int) (text string, unnamed []*Item) {
	lists, returned := map[byte][]int64{}, map[offsets.Location]*Item{}
	for at, kind := range p.done.Before { // what is not fetched yet stays as it was
		if !at.Retry && at.Offset >= p.done.Next {
			lists[kind] = append(lists[kind], at.Offset)
		}
	}
	for it := range p.m.tenure.named(p) {
		at := it.location()
		kind := p.m.tenure.listed(p, it, at)
		if kind == 0 || ending[it] || !at.Retry && p.done.Has(at.Offset) {
			continue
		}
		if kind != offsets.LeasedPart {
			returned[at] = it
		}
		if at.Retry {
			kind |= 0x20
		}
		lists[kind] = append(lists[kind], at.Offset)
	}
	for i := range len(offsets.ListParts) {
		kind := offsets.ListParts[i]
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
	if !it.delivered {
		it.delivered = true
		p.delivered = append(p.delivered, it)
	}
}

// location is where an item is stored.
func (it *Item) location() offsets.Location {
	if it.logKey != "" {
		return offsets.Location{Retry: true, Offset: it.logOffset}
	}
	return offsets.Location{Offset: it.offset}
}

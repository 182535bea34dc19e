package engine

import "github.com/ferrymq/ferry/driver"

// A ready item that comes behind cold messages waits for them beside the lanes: one of the normal lane for all that
// became ready before it, one of another lane only for those with its key, of which more may be thought than there are.

// behindCold returns up to which place cold messages must be in memory before it can be claimed, if it must wait at
// all.
func (g *group) behindCold(it *item) (until uint64, waits bool) {
	if g.cold == 0 || it.Chained() {
		return 0, false
	}
	frontier := g.frontier()
	if it.Place < frontier {
		return 0, false
	}
	c := it.content()
	switch {
	case c.priority == driver.Normal:
		return it.Place, true
	case c.key == "":
		return 0, false
	}
	until = min(it.Place, g.t.cold.keys.upTo(c.key))
	return until, until >= frontier
}

// waitBehind makes a ready item wait. What follows it in its key waits for it too.
func (g *group) waitBehind(it *item, until uint64) {
	g.t.cold.keys.note(it.content().key, it.Place)
	g.behind.Add(&it.Node, int64(until))
}

// release puts items to the lanes that no longer come behind something cold.
func (g *group) release() {
	for frontier := g.frontier(); g.behind.Len() > 0 && uint64(g.behind.Next()) < frontier; {
		it := g.behind.First()
		g.behind.Remove(&it.Node)
		g.offer(it)
	}
}

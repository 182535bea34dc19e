package engine

import "github.com/ferrymq/ferry/driver"

// bury makes an item a dead letter of its group, with everything needed to understand and replay it.
func (g *group) bury(it *item, f *driver.Failure, instance string, now moment) {
	r := it.record()
	last := driver.Failure{}
	if f != nil {
		last = driver.AppendFailure(nil, *f)[0] // clipped
	}
	last.At = now.at.Round(0)
	dl := &driver.DeadLetter{
		Origin:   driver.Origin{Topic: g.t.name, Group: g.name, Ref: it.e.ref(), Instance: instance},
		Attempts: int(it.failures), Deliveries: int(it.lost) + 1, Rounds: int(r.rounds),
	}
	dl.Bury(last)
	g.detach(it)
	g.move(it, dead, now)
	g.buried++
	r.dead, r.buried = dl, g.buried
	g.graves.put(r.buried, it)
}

// deadLetter returns a copy of the record, with the message whole.
func (it *item) deadLetter() *driver.DeadLetter {
	dl := *it.more.dead
	dl.Message = it.e.message(it.g.t.name, it.content())
	dl.History = append([]driver.Failure(nil), it.more.history...)
	return &dl
}

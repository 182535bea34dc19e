package deadletter_test

import (
	"errors"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

// replayToAnotherGroup hands letters of one group to another one of the topic, which alone gets them.
func replayToAnotherGroup(k *kit) {
	for _, g := range []string{driver.DefaultGroup, "rescue"} {
		k.ok(k.d.EnsureGroup(k.ctx(), topic, g, driver.GroupOptions{}))
	}
	k.dead(slow, numbered("m", 6)...)
	r := deadletter.ReplayOptions{Selection: deadletter.Selection{Topic: topic, Group: driver.DefaultGroup},
		ToGroup: "rescue"}
	if got := k.replay(r); got.Done != 0 || got.Skipped != 6 {
		k.Errorf("a group that has not had them: %+v", got)
	}
	ack := func(*driver.Delivery) driver.Settlement { return driver.Settlement{Outcome: driver.Ack} }
	k.take(topic, "rescue", 6, ack)
	if got := k.replay(r); got.Done != 6 {
		k.Errorf("%+v", got)
	}
	if got := k.all(deadletter.Selection{}, 10, 0); len(got) != 0 {
		k.Errorf("left: %v", got)
	}
	k.take(topic, "rescue", 6, func(d *driver.Delivery) driver.Settlement {
		if d.Cause != driver.CauseReplay {
			k.Errorf("%s comes because of %v", d.ID, d.Cause)
		}
		return driver.Settlement{Outcome: driver.Ack}
	})
	for _, wrong := range []deadletter.ReplayOptions{
		{ToGroup: "rescue", To: "other"}, {ToGroup: "no such name!"},
		{ToGroup: "rescue", Selection: deadletter.Selection{Topic: topic, Group: "rescue"}},
	} {
		if _, err := k.queue.Replay(k.ctx(), wrong); !errors.Is(err, driver.ErrInvalid) {
			k.Errorf("%+v: %v", wrong, err)
		}
	}
}

// anotherDeathIsAnotherLetter: what was seen dead, and was replayed and died again since, is not what is removed.
func anotherDeathIsAnotherLetter(k *kit) {
	k.dead(slow, "a")
	p, err := k.queue.Browse(k.ctx(), deadletter.Query{})
	k.ok(err)
	seen := p.Letters[0].Target()
	k.replay(deadletter.ReplayOptions{})
	if err := k.d.Delete(k.ctx(), []driver.Target{seen})[0]; !errors.Is(err, driver.ErrConflict) {
		k.Errorf("delete of a letter that lives: %v", err)
	}
	k.bury(1, slow)
	if err := k.d.Delete(k.ctx(), []driver.Target{seen})[0]; !errors.Is(err, driver.ErrConflict) {
		k.Errorf("delete of a letter that died again: %v", err)
	}
	if got := k.all(deadletter.Selection{}, 10, 0); len(got) != 1 {
		k.Errorf("left: %v", got)
	}
}

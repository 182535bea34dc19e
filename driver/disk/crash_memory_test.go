package disk

import (
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// What a store remembers beside messages: dedup ids inside their window, and pauses.

// pause stops or lifts deliveries of the slow group of the second topic, which nobody consumes.
func (w *world) pause() {
	e := event{kind: pausing, place: place{topic: crashTopics[1], group: crashGroups[1]}, count: w.rng.IntN(2)}
	w.note(e)
	w.ok(w.d.Pause(ctx, e.place.topic, e.place.group, e.count == 1), "Pause")
	e.kind = paused
	w.note(e)
}

// deduplicated gives a message a dedup id that is remembered longer than the test takes.
func deduplicated(m *driver.Message) {
	m.DedupID, m.DedupWindow = "once "+m.ID, 24*time.Hour
}

// memory demands that what was acknowledged is remembered.
func (j *judge) memory() {
	for id, f := range j.fates {
		s := j.sent[id]
		if s == nil || s.DedupID == "" || !f.acked || !j.safe() || s.Topic == "scratch" {
			continue
		}
		again := *s.Message
		again.ID, again.OwnID = id+" again", false
		rs, err := j.d.Publish(ctx, []*driver.Message{&again}, driver.PublishOptions{})
		if err != nil || !rs[0].Duplicate || rs[0].ID != id {
			j.wrong("%q with the dedup id of %q: %+v, %v, want a duplicate", again.ID, id, rs[0], err)
		}
	}
	j.pauses()
}

func (j *judge) pauses() {
	known, want := false, false
	for _, e := range j.events[:j.c.events] {
		switch e.kind {
		case pausing:
			known = false
		case paused:
			known, want = true, e.count == 1
		}
	}
	if !known {
		return
	}
	stats, err := j.d.Stats(ctx, crashTopics[1])
	j.ok(err, "Stats")
	i := slices.IndexFunc(stats.Groups, func(g driver.GroupStats) bool { return g.Group == crashGroups[1] })
	if i < 0 || stats.Groups[i].Paused != want {
		j.wrong("it should be paused: %t; %+v", want, stats.Groups)
	}
}

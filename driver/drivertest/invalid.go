package drivertest

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

var rubbish = []byte("\xff\x00 not an envelope \xfe")

// plant puts rubbish between two messages, and waits until the driver has found it.
func (t *T) plant(s *sub) driver.Entry {
	t.Helper()
	t.put("a")
	t.ok(t.PlantRaw(t.ctx(), t.Driver, topic, rubbish), "PlantRaw")
	t.put("b")
	s.ack(s.expect("a", "b")...)
	t.until("the rubbish is found", func() bool { return len(t.browse(driver.StateInvalid)) == 1 })
	return t.browse(driver.StateInvalid)[0]
}

func invalidIsKeptWhole(t *T) {
	s := t.consumer()
	e := t.plant(s)
	t.equal(e.Raw, rubbish, "bytes")
	t.equal(e.State, driver.StateInvalid, "state")
	if e.Problem == "" || e.Message != nil || e.Group != "" || e.Ref.IsZero() {
		t.Errorf("entry %+v, want a problem, a ref, no message and no group", e)
	}
	s.idle()
	if st := t.stats(topic); st.Invalid != 1 {
		t.Errorf("Invalid is %d", st.Invalid)
	}
	got := t.get(driver.Target{Topic: topic, Ref: e.Ref})
	t.equal(got.Raw, rubbish, "bytes by Get")
}

// invalidTellsWhen: what cannot be decoded says when that was found, and still does after a restart.
func invalidTellsWhen(t *T) {
	s := t.consumer()
	begin := time.Now()
	e := t.plant(s)
	if off := e.FoundAt.Sub(begin); off < -t.clockSlack() || off > t.Patience {
		t.Errorf("found at %v, %v after it was stored", e.FoundAt, off)
	}
	t.pass(5 * time.Millisecond)
	at := driver.Target{Topic: topic, Ref: e.Ref}
	if again, got := t.browse(driver.StateInvalid)[0], t.get(at); !again.FoundAt.Equal(e.FoundAt) ||
		!got.FoundAt.Equal(e.FoundAt) {
		t.Errorf("found at %v, later at %v by Browse and at %v by Get", e.FoundAt, again.FoundAt, got.FoundAt)
	}
	if t.Reopen == nil {
		return
	}
	s.leave()
	t.restart()
	if got := t.get(at); !got.FoundAt.Equal(e.FoundAt) || got.Problem != e.Problem {
		t.Errorf("after a restart: %q, found at %v, want %q at %v", got.Problem, got.FoundAt, e.Problem, e.FoundAt)
	}
}

func invalidIsMended(t *T) {
	s := t.consumer()
	e := t.plant(s)
	edit := t.msg("mended", key("k"))
	at := driver.Target{Topic: topic, Ref: e.Ref}
	t.hinted(t.Move(t.ctx(), []driver.Move{{Target: at}})[0]) // there is nothing to publish
	t.move(driver.Move{Target: at, Edit: edit})
	t.equal(s.expect("mended")[0].Key, "k", "key")
	t.equal(len(t.browse(driver.StateInvalid)), 0, "invalid entries")
	t.equal(t.stats(topic).Invalid, int64(0), "count of invalid entries")
}

func invalidIsDeleted(t *T) {
	s := t.consumer()
	e := t.plant(s)
	t.ok(t.Delete(t.ctx(), []driver.Target{{Topic: topic, Ref: e.Ref}})[0], "Delete")
	t.equal(len(t.browse(driver.StateInvalid)), 0, "invalid entries")
	t.equal(t.stats(topic).Invalid, int64(0), "count of invalid entries")
	s.idle()
}

package wecom_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
)

// A message that is too large for the broker holds up nobody: its beginning is published, in its place, and becomes a
// parse error that tells whose it was.
func TestTooLargeMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Tokenless: 10}, wecom.Options{})
	first := r.vendor.Say("kf1", "ann", "before")
	large := r.vendor.Say("kf1", "ann", strings.Repeat("x", maxBody))
	last := r.vendor.Say("kf1", "ann", "after")
	for range 2 { // the second time all of it is known
		r.ok(r.p.PullNow(t.Context(), "kf1", ""))
		r.ok(r.p.SetCursor(t.Context(), "kf1", ""))
	}
	r.wantPublished([]string{first, large, last})
	if s := r.p.Stats(); s.Messages != 3 || s.Cut != 1 || s.Duplicates != 3 {
		t.Errorf("%+v", s)
	}
	got := r.handled()
	if a, b := <-got, <-got; a.ID != first || b.ID != last {
		t.Errorf("handled %s and %s", a.ID, b.ID)
	}
	invalid := r.dead()
	if h := invalid.Headers; invalid.ID != large || h[wecom.HeaderUser] != "ann" || h[wecom.HeaderAccount] != "kf1" {
		t.Errorf("%s %v", invalid.ID, h)
	}
	if n, err := strconv.Atoi(invalid.Headers[wecom.HeaderSize]); err != nil || n <= maxBody {
		t.Errorf("%v", invalid.Headers)
	}
}

// dead waits for a dead letter.
func (r *rig) dead() *driver.Message {
	r.Helper()
	q := driver.Query{Topic: wecom.Topic, Group: "default", State: driver.StateDead, Limit: 10}
	for {
		page, err := r.broker.Driver().Browse(r.Context(), q)
		r.ok(err)
		if len(page.Entries) > 0 {
			return page.Entries[0].Message
		}
		time.Sleep(5 * time.Millisecond)
	}
}

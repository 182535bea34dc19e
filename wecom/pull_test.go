package wecom_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
	"github.com/ferrymq/ferry/worker"
)

// say has a customer write n texts, and returns their ids.
func (r *rig) say(account, user string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = r.vendor.Say(account, user, fmt.Sprint(i))
	}
	return ids
}

func (r *rig) wantPublished(ids []string) {
	r.Helper()
	if got := r.published(); !slices.Equal(got, ids) {
		r.Errorf("published %v, want %v", got, ids)
	}
}

// Every message of every page is published under the vendor's id, in order, the very first one and those behind an
// empty page included.
//
// Lessons: L26 L38
func TestAllPagesAreRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Page: 7, Empty: 3, Again: 5, Tokenless: 1000}, wecom.Options{})
	ids := r.say("kf1", "ann", 100)
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	r.wantPublished(ids)
	more := r.say("kf1", "ben", 3)
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	r.wantPublished(append(ids, more...))
	if s := r.p.Stats(); s.Messages != 103 || s.Duplicates < 15 {
		t.Errorf("%+v", s)
	}
}

// The cursor stays where it is while the broker does not take a page, wherever the pull is.
//
// Lessons: L30 L39
func TestCursorWaitsForTheBroker(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Page: 10, Tokenless: 1000}, wecom.Options{})
	ids := r.say("kf1", "ann", 55)
	for publishes := range 6 {
		before, err := r.p.Cursor(t.Context(), "kf1")
		r.ok(err)
		r.driver.Set(faulty.Publish, faulty.ByNumber(func(n int) faulty.Fault {
			if n > 1 { // each pull comes one page farther
				return faulty.Fail(errAway)
			}
			return nil
		}))
		err = r.p.PullNow(t.Context(), "kf1", "")
		after, gone := r.p.Cursor(t.Context(), "kf1")
		r.ok(gone)
		if last := publishes == 5; last != (err == nil) || after.Position == before.Position {
			t.Errorf("pull %d: %v, from %q to %q", publishes, err, before.Position, after.Position)
		}
	}
	r.wantPublished(ids)
}

// A message that was published and whose cursor was not moved is recognised.
func TestCrashBetweenPublishAndCursor(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Tokenless: 1000}, wecom.Options{})
	ids := r.say("kf1", "ann", 20)
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	r.ok(r.p.SetCursor(t.Context(), "kf1", "")) // as it was before
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	r.wantPublished(ids)
}

// Two pullers of one account: one that does not know that it is not alone does not move the cursor of the other.
func TestTwoPullers(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Page: 10, Tokenless: 10_000}, wecom.Options{})
	ids := r.say("kf1", "ann", 300)
	var pullers sync.WaitGroup
	for range 2 {
		p := r.pipeline(wecom.Options{})
		pullers.Go(func() {
			for {
				err := p.PullNow(t.Context(), "kf1", "")
				if err == nil {
					return
				}
				if !errors.Is(err, ferry.ErrConflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	pullers.Wait()
	r.wantPublished(ids)
}

// A cursor is set also while somebody pulls, and moves it with every page.
func TestCursorIsSetDuringPulls(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Page: 1, Tokenless: 1 << 20}, wecom.Options{})
	ids := r.say("kf1", "ann", 50)
	ctx, end := context.WithCancel(t.Context())
	var puller sync.WaitGroup
	puller.Go(func() {
		for ctx.Err() == nil {
			_ = r.p.PullNow(ctx, "kf1", "") // whose cursor is moved is the one that loses
		}
	})
	for range 100 {
		r.ok(r.p.SetCursor(t.Context(), "kf1", ""))
	}
	end()
	puller.Wait()
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	r.wantPublished(ids)
}

// What becomes of a job after a pull that did not succeed.
func TestOutcomesOfAPull(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code    int
		outcome ferry.Outcome
	}{
		"limited": {wecom.CodeLimited, ferry.OutcomeRelease},
		"busy":    {wecom.CodeBusy, 0},
		"account": {wecom.CodeWrongAccount, 0},
	} {
		r := newRig(t, wecomtest.Options{}, wecom.Options{})
		r.vendor.Fail("kf/sync_msg", 1, test.code)
		err := r.p.PullAccount(t.Context(), "kf1", time.Now())
		if o, decided := worker.Decided(err); err == nil || o != test.outcome || decided != (test.outcome != 0) {
			t.Errorf("%s: %v: %v", name, o, err)
		}
		if s := r.p.Stats(); s.Problems["kf1"] == nil || s.Limited+s.PullsFailed != 1 {
			t.Errorf("%s: %+v", name, s)
		}
		r.ok(r.p.PullAccount(t.Context(), "kf1", time.Now()))
		if s := r.p.Stats(); len(s.Problems) != 0 || s.Pulls != 1 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// Without the token of a callback the vendor allows few pulls; an outdated token is left out.
func TestWithoutToken(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Tokenless: 2}, wecom.Options{})
	for i := range 3 {
		err := r.p.PullNow(t.Context(), "kf1", "outdated")
		if limited := wecom.Code(err) == wecom.CodeLimited; limited != (i == 2) {
			t.Errorf("pull %d: %v", i, err)
		}
	}
}

// An outdated token costs one call, not one for each page.
func TestOutdatedTokenIsLeftOutOfAllPages(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Page: 10, Tokenless: 1000}, wecom.Options{})
	for range 30 {
		r.vendor.Say("kf1", "ann", "hello")
	}
	r.ok(r.p.PullNow(t.Context(), "kf1", "outdated"))
	if n := r.vendor.Calls("kf/sync_msg"); n != 1+3 {
		t.Errorf("%d calls for 3 pages", n)
	}
}

// The access token ends in the middle of a pull.
func TestTokenEndsDuringAPull(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Page: 10, Tokenless: 1000}, wecom.Options{})
	ids := r.say("kf1", "ann", 50)
	r.driver.Set(faulty.Publish, faulty.ByNumber(func(page int) faulty.Fault {
		if page == 2 {
			r.vendor.ExpireTokens()
		}
		return nil
	}))
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	r.wantPublished(ids)
}

// A cursor that the vendor does not take any more is given up, and nothing is lost or published twice.
func TestRefusedCursor(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Page: 10, Tokenless: 1000}, wecom.Options{})
	ids := r.say("kf1", "ann", 25)
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	r.vendor.ForgetCursors()
	ids = append(ids, r.say("kf1", "ann", 5)...)
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	r.wantPublished(ids)
	if s := r.p.Stats(); s.Rewound != 1 {
		t.Errorf("%+v", s)
	}
}

// Long pulls are done in turns, so that other accounts are not held up.
func TestTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Page: 10, Tokenless: 1000}, wecom.Options{})
	r.p.SetTurn(0)
	ids := r.say("kf1", "ann", 25)
	for i := range 3 {
		err := r.p.PullAccount(t.Context(), "kf1", time.Now())
		if o, _ := worker.Decided(err); (o == ferry.OutcomeRelease) != (i < 2) {
			t.Errorf("turn %d: %v", i, err)
		}
	}
	r.wantPublished(ids)
	if s := r.p.Stats(); s.Pulls != 3 || len(s.Problems) != 0 {
		t.Errorf("%+v", s)
	}
}

// The schedule's job asks for accounts that were not pulled lately: those of the configuration, and those that were
// seen.
func TestIdleAccountsArePulled(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	config := r.vendor.Config()
	config.Accounts = []string{"never", "seen"}
	p, err := wecom.New(r.broker, config, wecom.Options{})
	r.ok(err)
	defer p.Close()
	r.ok(p.PullNow(t.Context(), "seen", ""))
	r.ok(p.PullNow(t.Context(), "found", ""))
	jobs := func() (keys []string) {
		page, err := r.broker.Driver().Browse(t.Context(), driver.Query{Topic: wecom.PullTopic, Group: "default",
			State: driver.StateReady, Limit: 100})
		if err != nil && !errors.Is(err, ferry.ErrNotFound) {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			keys = append(keys, e.Message.Key)
		}
		slices.Sort(keys)
		return keys
	}
	r.ok(p.PullAccount(t.Context(), "", time.Now()))
	if got := jobs(); !slices.Equal(got, []string{"never"}) {
		t.Errorf("%v", got)
	}
	for range 3 { // what waits already is not asked for again
		r.ok(p.PullAccount(t.Context(), "", time.Now().Add(time.Minute)))
		if got := jobs(); !slices.Equal(got, []string{"found", "never", "seen"}) {
			t.Errorf("%v", got)
		}
	}
	stop := runtest.Start(t, p.Run)
	for p.Stats().Pulls < 3 {
		time.Sleep(time.Millisecond)
	}
	stop()
	for len(jobs()) < 3 { // what was pulled is asked for again, some time later
		r.ok(p.PullAccount(t.Context(), "", time.Now().Add(time.Hour)))
	}
}

// An account whose pulls fail for hours has one job of the schedule for each of them, and not one for each minute.
func TestFailingAccountDoesNotPileUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := wecom.Config{Corp: "corp", Secret: "secret", Accounts: []string{"kf1"}, Vendor: "http://127.0.0.1:1",
			AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}} // where nobody listens
		p, err := wecom.New(newBroker(t), config, wecom.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		ctx, end := context.WithTimeout(t.Context(), 5*time.Hour)
		defer end()
		if err := p.Run(ctx); err != nil {
			t.Fatal(err)
		}
		lag, err := p.Lag(t.Context())
		if err != nil || lag.Pulls > 6 || p.Stats().PullsFailed < 100 {
			t.Errorf("%+v, %v after %d pulls that failed", lag, err, p.Stats().PullsFailed)
		}
	})
}

// What was said while no callback came is pulled by the schedule, and a burst of callbacks is one pull or few.
func TestRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Tokenless: 1000}, wecom.Options{})
	got := r.handled()
	for range 50 {
		r.ok(r.p.Pull(t.Context(), "kf1"))
	}
	id := r.vendor.Say("kf1", "ann", "hello")
	runtest.Start(r, r.p.Run)
	if m := <-got; m.ID != id {
		t.Errorf("%+v", m)
	}
	lag, err := r.p.Lag(t.Context())
	r.ok(err)
	if n := r.vendor.Calls("kf/sync_msg"); n > 10 || lag.Messages["default"] > 1 {
		t.Errorf("%d calls for 50 jobs, lag %+v", n, lag)
	}
	cursors, err := r.p.Cursors(t.Context())
	r.ok(err)
	if len(cursors) != 1 || cursors[0].Account != "kf1" || cursors[0].Position == "" || cursors[0].Pulled.IsZero() {
		t.Errorf("%+v", cursors)
	}
}

// Whatever the vendor gives is kept whole: without an id, with a strange one, of an unknown kind, not even an object.
func TestStrangeMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	for _, m := range []string{
		`{"msgid":"1","msgtype":"hologram","external_userid":"ann","hologram":{"depth":3}}`,
		`{"msgtype":"text","text":{"content":"without an id"}}`,
		`{"msgid":"two\nlines","external_userid":"with space","msgtype":"text"}`,
		`{"msgid":"4","msgtype":"text","text":7}`,
		`17`,
	} {
		r.vendor.Add("kf1", "", json.RawMessage(m))
		r.vendor.Add("kf1", "", json.RawMessage(m)) // and again
	}
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	if ids := r.published(); len(ids) != 5 || ids[0] != "1" || ids[3] != "4" {
		t.Errorf("%v", ids)
	}
	got := r.handled()
	m := <-got
	if m.Value.Kind != "hologram" || !json.Valid(m.Value.Raw) || string(m.Body) != string(m.Value.Raw) || m.Key != "ann" {
		t.Errorf("%+v", m.Value)
	}
}

// Voices come in the format that the configuration names.
func TestVoiceFormat(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	for format, silk := range map[string]bool{"": false, wecom.VoiceAMR: false, wecom.VoiceSilk: true} {
		config := r.vendor.Config()
		config.VoiceFormat = format
		p, err := wecom.New(r.broker, config, wecom.Options{})
		r.ok(err)
		t.Cleanup(p.Close)
		r.ok(p.PullNow(t.Context(), "kf1", ""))
		if got := r.vendor.Silk("kf1"); got != silk {
			t.Errorf("%q: Silk %v", format, got)
		}
	}
}

// A message is recognised for as long as the configuration says.
func TestRecognise(t *testing.T) {
	t.Parallel()
	for _, recognise := range []time.Duration{0, time.Hour} {
		r := newRig(t, wecomtest.Options{}, wecom.Options{})
		config := r.vendor.Config()
		config.Recognise = recognise
		p, err := wecom.New(r.broker, config, wecom.Options{})
		r.ok(err)
		t.Cleanup(p.Close)
		r.vendor.Say("kf1", "ann", "hello")
		r.ok(p.PullNow(t.Context(), "kf1", ""))
		page, err := r.broker.Driver().Browse(t.Context(), driver.Query{Topic: wecom.Topic, Group: "default",
			State: driver.StateReady, Limit: 10})
		r.ok(err)
		want := cmp.Or(recognise, wecom.Recognised)
		if len(page.Entries) != 1 || page.Entries[0].Message.DedupWindow != want {
			t.Errorf("%+v, want a window of %v", page.Entries, want)
		}
	}
}

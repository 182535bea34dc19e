package wecom_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
)

// An answer that is not the vendor's moves no cursor: it is counted, told of, and the next pull brings what this one
// did not.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]struct {
		status int
		body   string
	}{
		"a page of HTML":  {http.StatusOK, "<html>try again later</html>"},
		"half an answer":  {http.StatusOK, `{"errcode":0,"has_more":1,"next_cursor":"c","msg_list":[{"msgid":"1"}`},
		"nothing":         {http.StatusOK, ""},
		"another type":    {http.StatusOK, `{"errcode":0,"has_more":0,"next_cursor":"c","msg_list":{"msgid":"1"}}`},
		"no code":         {http.StatusOK, `{"errcode":"zero"}`},
		"too large":       {http.StatusOK, `{"errcode":0,"msg_list":["` + strings.Repeat("x", 33<<20) + `"]}`},
		"a bad gateway":   {http.StatusBadGateway, "bad gateway"},
		"a good text":     {http.StatusInternalServerError, `{"errcode":0,"has_more":0,"next_cursor":"c","msg_list":[]}`},
		"too many of it":  {http.StatusTooManyRequests, ""},
		"a redirect":      {http.StatusFound, ""},
		"a deep document": {http.StatusOK, `{"errcode":0,"msg_list":[` + strings.Repeat("[", 100_000)},
	} {
		r := newRig(t, wecomtest.Options{Page: 10, Tokenless: 1000}, wecom.Options{})
		ids := r.say("kf1", "ann", 15)
		r.ok(r.p.PullNow(t.Context(), "kf1", ""))
		ids = append(ids, r.say("kf1", "ann", 15)...)
		before, err := r.p.Cursor(t.Context(), "kf1")
		r.ok(err)
		r.vendor.Break("kf/sync_msg", 1, broken.status, broken.body)
		if err := r.p.PullAccount(t.Context(), "kf1", time.Now()); !errors.Is(err, ferry.ErrNotApplied) {
			t.Errorf("%s: %v", name, err)
		}
		after, err := r.p.Cursor(t.Context(), "kf1")
		r.ok(err)
		if s := r.p.Stats(); after != before || s.PullsFailed != 1 || s.Problems["kf1"] == nil {
			t.Errorf("%s: from %+v to %+v, %+v", name, before, after, s)
		}
		r.ok(r.p.PullAccount(t.Context(), "kf1", time.Now()))
		r.wantPublished(ids)
	}
}

// A page that is not answered while somebody waits for it is pulled again.
func TestSlowVendor(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Tokenless: 1000}, wecom.Options{})
	ids := r.say("kf1", "ann", 5)
	r.vendor.Slow("kf/sync_msg", 1, time.Hour)
	hurried, done := context.WithCancel(t.Context())
	var pulls sync.WaitGroup
	pulls.Go(func() {
		if err := r.p.PullNow(hurried, "kf1", ""); err == nil {
			t.Error("the pull did not fail")
		}
	})
	for r.vendor.Calls("kf/sync_msg") == 0 {
		time.Sleep(time.Millisecond)
	}
	done()
	pulls.Wait()
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	r.wantPublished(ids)
}

// The vendor sends a callback again that was answered late or with an error, three times: it becomes one job.
func TestVendorCallsAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Patience: time.Second}, wecom.Options{})
	var calls atomic.Int64
	end := make(chan struct{})
	url := r.serve(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch calls.Add(1) {
		case 1: // it is stored, and nobody is told in time
			r.p.Callback().ServeHTTP(httptest.NewRecorder(), req)
			<-end
		case 2: // the broker is away
			r.driver.Set(faulty.Publish, faulty.Fail(errAway))
			r.p.Callback().ServeHTTP(w, req)
			r.driver.Set(faulty.Publish, nil)
		default:
			r.p.Callback().ServeHTTP(w, req)
		}
	}))
	defer close(end)
	if sent, taken := r.vendor.Callback("kf1").Deliver(t.Context(), url); sent < 3 || !taken {
		t.Errorf("sent %d times, %v", sent, taken)
	}
	stats, err := r.broker.Driver().Stats(t.Context(), wecom.PullTopic)
	r.ok(err)
	if stats.Published != 1 {
		t.Errorf("%d jobs of one callback", stats.Published)
	}
	refuses := r.serve(http.NotFoundHandler())
	if sent, taken := r.vendor.Callback("kf1").Deliver(t.Context(), refuses); sent != 4 || taken {
		t.Errorf("what nobody takes was sent %d times, %v", sent, taken)
	}
}

// A puller may die between any two of its calls to the broker: who goes on publishes the rest, and nothing twice.
// TestKilledPullers does it to processes, wherever they are.
func TestPullerDiesAnywhere(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{false, true} {
		deaths := 0
		for died := true; died; {
			deaths++
			died = pullerDies(t, deaths, applied)
		}
		if deaths < 12 { // pages, each with a publish and a cursor
			t.Errorf("%d deaths", deaths)
		}
	}
}

// pullerDies pulls with a process that dies at a call, goes on with another, and reports whether it came to that call.
func pullerDies(t *testing.T, at int, applied bool) bool {
	t.Helper()
	r := newRig(t, wecomtest.Options{Page: 3, Empty: 3, Again: 4, Tokenless: 1000}, wecom.Options{})
	ids := r.say("kf1", "ann", 10)
	var died atomic.Bool
	d, dies := faulty.New(r.driver), faulty.ByNumber(func(n int) faulty.Fault {
		if n < at {
			return nil
		}
		died.Store(true)
		if n == at && applied {
			return faulty.Lose(errLost)
		}
		return faulty.Fail(errAway)
	})
	disturb(dies, dies, d)
	b, err := ferry.New(d, ferry.Options{})
	r.ok(err)
	p, err := wecom.New(b, r.vendor.Config(), wecom.Options{})
	r.ok(err)
	defer p.Close()
	failed := p.PullNow(t.Context(), "kf1", "")
	if !died.Load() && failed != nil {
		t.Errorf("death %d did not come: %v", at, failed)
	}
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	if got := r.published(); fmt.Sprint(got) != fmt.Sprint(ids) {
		t.Errorf("death at call %d, applied %v: published %v, want %v", at, applied, got, ids)
	}
	return died.Load()
}

package wecom_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/internal/pipetest"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
)

func TestVerification(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	r.ok(r.vendor.Verify(t.Context(), r.url))
}

// From a callback to a handler and to a reply.
func TestWholeWay(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	got := r.handled()
	runtest.Start(r, r.p.Run)
	id := r.vendor.Say("kf1", "ann", "hello")
	if status, err := r.vendor.Callback("kf1").Send(t.Context(), r.url); err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	m := <-got
	if m.ID != id || m.Key != "ann" || m.Value.Text.Content != "hello" || m.Value.Account != "kf1" {
		t.Errorf("%+v", m.Value)
	}
	r.ok(r.p.Client().ReplyTo(&m.Value).Text(t.Context(), "hi"))
	if sent := r.vendor.Sent(); len(sent) != 1 || sent[0].User != "ann" || sent[0].Text != "hi" {
		t.Errorf("%+v", sent)
	}
}

// entities is XML that would grow, or be fetched, if entities were resolved.
const entities = `<!DOCTYPE xml [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">
	<!ENTITY c SYSTEM "file:///etc/passwd">]>
	<xml><Encrypt>&b;&c;</Encrypt></xml>`

func TestBadCallbacks(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	good := func() wecomtest.Callback { return r.vendor.Callback("kf1") }
	changed := func(change func(c *wecomtest.Callback)) wecomtest.Callback {
		c := good()
		change(&c)
		return c
	}
	messages := wecom.Notice{Event: "kf_msg_or_event", Account: "kf1"}
	for name, test := range map[string]struct {
		c      wecomtest.Callback
		status int
	}{
		"good":       {good(), 200},
		"signature":  {changed(func(c *wecomtest.Callback) { c.Signature = strings.Repeat("0", 40) }), 403},
		"other time": {changed(func(c *wecomtest.Callback) { c.Timestamp = "1" }), 403},
		"old":        {r.vendor.NoticeAt(messages, time.Now().Add(-6*time.Minute)), 403},
		"future":     {r.vendor.NoticeAt(messages, time.Now().Add(6*time.Minute)), 403},
		"malformed":  {changed(func(c *wecomtest.Callback) { c.Body = "<xml><Encrypt>" }), 400},
		"JSON":       {changed(func(c *wecomtest.Callback) { c.Body = `{"encrypt":"x"}` }), 400},
		"empty":      {changed(func(c *wecomtest.Callback) { c.Body = "" }), 400},
		"upper case": {changed(func(c *wecomtest.Callback) { c.Signature = strings.ToUpper(c.Signature) }), 403},
		"an entity":  {changed(func(c *wecomtest.Callback) { c.Body = entities }), 400},
		"deep":       {changed(func(c *wecomtest.Callback) { c.Body = strings.Repeat("<a>", 20_000) }), 400},
		"attributes": {changed(func(c *wecomtest.Callback) { c.Body = "<xml" + strings.Repeat(" a='b'", 10_000) + ">" }),
			400},
		"large":           {changed(func(c *wecomtest.Callback) { c.Body += strings.Repeat(" ", 65<<10) }), 413},
		"no account":      {r.vendor.Notice(wecom.Notice{Event: "kf_msg_or_event"}), 400},
		"strange account": {r.vendor.Notice(wecom.Notice{Event: "kf_msg_or_event", Account: "a b"}), 400},
		"other event":     {r.vendor.Notice(wecom.Notice{Event: "kf_account_auth_change"}), 200},
	} {
		if status, err := test.c.Send(t.Context(), r.url); err != nil || status != test.status {
			t.Errorf("%s: %d, %v; want %d", name, status, err, test.status)
		}
	}
	w := httptest.NewRecorder()
	r.p.Callback().ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d", w.Code)
	}
	if s := r.p.Stats(); s.Callbacks != 2 || s.Refused != 15 || s.Other != 1 || s.LastCallback.IsZero() {
		t.Errorf("%+v", s)
	}
}

// A parameter that comes twice is refused: who is in front of us may have looked at the other one.
func TestParameterTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	c := r.vendor.Callback("kf1")
	for _, name := range []string{"msg_signature", "timestamp", "nonce", "echostr"} {
		q := url.Values{"msg_signature": {c.Signature}, "timestamp": {c.Timestamp}, "nonce": {c.Nonce}, "echostr": {""}}
		q.Add(name, q.Get(name))
		w := httptest.NewRecorder()
		r.p.Callback().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/?"+q.Encode(), strings.NewReader(c.Body)))
		if w.Code != http.StatusForbidden {
			t.Errorf("%s twice: %d", name, w.Code)
		}
	}
}

// While keys are changed callbacks of the new and of the old pair are taken, also when only one of both texts changed.
func TestKeysAreChanged(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	was := r.vendor.Config().Keys[0]
	for name, next := range map[string]wecom.KeyPair{
		"both": otherPair, "the token": {Token: "new", AESKey: was.AESKey},
		"the AES key": {Token: was.Token, AESKey: otherPair.AESKey},
	} {
		config := r.vendor.Config()
		config.Keys = []wecom.KeyPair{next, was}
		p, err := wecom.New(r.broker, config, wecom.Options{})
		r.ok(err)
		t.Cleanup(p.Close)
		to := r.serve(p.Callback())
		for _, pair := range config.Keys {
			r.vendor.ChangeKeys(pair)
			r.ok(r.vendor.Verify(t.Context(), to))
			if status, err := r.vendor.Callback("kf1").Send(t.Context(), to); err != nil || status != http.StatusOK {
				t.Errorf("%s: %d, %v", name, status, err)
			}
		}
	}
}

// A callback of somebody who knows the keys and is another corp is refused.
func TestWrongReceiver(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	k := keys(t, "another", r.vendor.Config().Keys...)
	q := url.Values{"timestamp": {strconv.FormatInt(time.Now().Unix(), 10)}, "nonce": {"n"}}
	signature, encrypted := k.Seal([]byte("x"), q.Get("timestamp"), "n")
	q.Set("msg_signature", signature)
	w := httptest.NewRecorder()
	r.p.Callback().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/?"+q.Encode(),
		strings.NewReader("<xml><Encrypt>"+encrypted+"</Encrypt></xml>")))
	if w.Code != http.StatusForbidden {
		t.Errorf("%d", w.Code)
	}
}

// Only what is stored is acknowledged: otherwise the vendor must call again.
//
// Lessons: L40
func TestCallbackIsStoredBeforeItIsAcknowledged(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	c := r.vendor.Callback("kf1")
	r.driver.Set(faulty.Publish, faulty.Fail(errAway))
	if status, err := c.Send(t.Context(), r.url); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("%d, %v", status, err)
	}
	r.driver.Set(faulty.Publish, nil)
	for range 3 { // the vendor calls again, and again although it was answered
		if status, err := c.Send(t.Context(), r.url); err != nil || status != http.StatusOK {
			t.Errorf("%d, %v", status, err)
		}
	}
	stats, err := r.broker.Driver().Stats(t.Context(), wecom.PullTopic)
	r.ok(err)
	if stats.Published != 1 {
		t.Errorf("%d jobs of one callback", stats.Published)
	}
	if s := r.p.Stats(); s.Failed != 1 || s.Callbacks != 3 {
		t.Errorf("%+v", s)
	}
}

// A broker that does not answer is not waited for longer than the vendor waits for us.
func TestCallbackIsAnsweredInTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	r.driver.Set(faulty.Publish, func(ctx context.Context, _ faulty.Call, _ func()) error {
		<-ctx.Done()
		return driver.NewError(driver.ErrUnknown, "no answer", "", ctx.Err())
	})
	config := r.vendor.Config()
	synctest.Test(t, func(t *testing.T) {
		p, err := wecom.New(r.broker, config, wecom.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		c := r.vendor.Callback("kf1")
		q := url.Values{"msg_signature": {c.Signature}, "timestamp": {c.Timestamp}, "nonce": {c.Nonce}}
		w, start := httptest.NewRecorder(), time.Now()
		p.Callback().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/?"+q.Encode(), strings.NewReader(c.Body)))
		if took := time.Since(start); w.Code != http.StatusServiceUnavailable || took != 4*time.Second {
			t.Errorf("%d after %v", w.Code, took)
		}
	})
}

// Who sends a callback slowly does not hold us up: it is given up after as long as the vendor waits.
func TestSlowCallback(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	config := r.vendor.Config()
	synctest.Test(t, func(t *testing.T) {
		p, err := wecom.New(r.broker, config, wecom.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		pipes := pipetest.Listen()
		s := &http.Server{Handler: p.Callback()}
		var serving sync.WaitGroup
		serving.Go(func() { _ = s.Serve(pipes) })
		defer func() { _ = s.Close(); serving.Wait() }()
		conn, err := pipes.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		start := time.Now()
		if _, err := conn.Write([]byte("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n<xml>")); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if took := time.Since(start); err != nil || !strings.Contains(line, "400") || took != 4*time.Second {
			t.Errorf("%q, %v after %v", line, err, took)
		}
	})
}

func TestOtherNotices(t *testing.T) {
	t.Parallel()
	told := make(chan wecom.Notice, 2)
	r := newRig(t, wecomtest.Options{}, wecom.Options{Other: func(_ context.Context, n wecom.Notice) error {
		told <- n
		if n.Account == "" {
			return errors.New("not now")
		}
		return nil
	}})
	for account, want := range map[string]int{"kf1": 200, "": 503} {
		notice := wecom.Notice{Event: "kf_account_auth_change", Account: account}
		status, err := r.vendor.Notice(notice).Send(t.Context(), r.url)
		if n := <-told; err != nil || status != want || n.Event != "kf_account_auth_change" {
			t.Errorf("%d, %v, %+v", status, err, n)
		}
	}
}

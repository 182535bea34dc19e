package wecom_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
)

func (r *rig) message(account, user string) *wecom.Message {
	return &wecom.Message{ID: r.vendor.Say(account, user, "hello"), Account: account, User: user, Sent: time.Now().Unix()}
}

// Five replies to a message are allowed, by us and by the vendor.
func TestFiveReplies(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	c := r.p.Client()
	conversation := c.ReplyTo(r.message("kf1", "ann"))
	for range wecom.MaxReplies {
		r.ok(conversation.Text(t.Context(), "hi"))
	}
	calls := r.vendor.Calls("kf/send_msg")
	if err := conversation.Text(t.Context(), "hi"); !errors.Is(err, ferry.ErrRefused) ||
		r.vendor.Calls("kf/send_msg") != calls {
		t.Errorf("the sixth: %v", err)
	}
	if _, err := c.Send(t.Context(), "kf1", "ann",
		wecom.Reply{Text: &wecom.Text{Content: "hi"}}); wecom.Code(err) != wecom.CodeReplyCount {
		t.Errorf("the vendor's word on the sixth: %v", err)
	}
	r.ok(c.ReplyTo(r.message("kf1", "ann")).Text(t.Context(), "hi")) // to her next message
	if sent := r.vendor.Sent(); len(sent) != 6 {
		t.Errorf("%+v", sent)
	}
}

func TestReplyComesTooLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	m := r.message("kf1", "ann")
	m.Sent -= int64((49 * time.Hour).Seconds())
	if err := r.p.Client().ReplyTo(m).Text(t.Context(), "hi"); !errors.Is(err, ferry.ErrRefused) ||
		r.vendor.Calls("kf/send_msg") != 0 {
		t.Error(err)
	}
}

// Of a message that does not tell when it was sent the vendor judges whether a reply comes too late.
func TestReplyToAMessageWithoutTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	m := r.message("kf1", "ann")
	m.Sent = 0
	r.ok(r.p.Client().ReplyTo(m).Text(t.Context(), "hi"))
}

// A proxy that calls every answer a file: a refusal is one all the same.
func TestRefusalThatLooksLikeAFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	c := r.vendor.Config()
	vendor, err := url.Parse(c.Vendor)
	r.ok(err)
	proxy := httputil.NewSingleHostReverseProxy(vendor)
	proxy.ModifyResponse = func(a *http.Response) error {
		a.Header.Set("Content-Type", "application/octet-stream")
		return nil
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	c.Vendor = s.URL
	p, err := wecom.New(r.broker, c, wecom.Options{})
	r.ok(err)
	t.Cleanup(p.Close)
	r.vendor.Fail("kf/send_msg", 1, wecom.CodeReplyCount)
	err = p.Client().ReplyTo(r.message("kf1", "ann")).Text(t.Context(), "hi")
	if wecom.Code(err) != wecom.CodeReplyCount {
		t.Errorf("got %v", err)
	}
}

// A handler that runs again sends its replies under the ids that they had.
func TestReplyIsSentOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	m := r.message("kf1", "ann")
	r.ok(r.p.Client().ReplyTo(m).Text(t.Context(), "hi"))
	if err := r.p.Client().ReplyTo(m).Text(t.Context(), "hi"); wecom.Code(err) == 0 {
		t.Error(err)
	}
	if sent := r.vendor.Sent(); len(sent) != 1 {
		t.Errorf("%+v", sent)
	}
}

func TestBadReplies(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	for name, reply := range map[string]wecom.Reply{
		"nothing":   {},
		"two":       {Text: &wecom.Text{Content: "x"}, Image: &wecom.Media{ID: "x"}},
		"empty":     {Text: &wecom.Text{}},
		"long":      {Text: &wecom.Text{Content: strings.Repeat("x", wecom.MaxText+1)}},
		"long id":   {ID: strings.Repeat("x", 33), Text: &wecom.Text{Content: "x"}},
		"no member": {ID: "a b", Text: &wecom.Text{Content: "x"}},
	} {
		if _, err := r.p.Client().Send(t.Context(), "kf1", "ann", reply); err == nil {
			t.Errorf("%s was sent", name)
		}
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	c, m := r.p.Client(), r.message("kf1", "ann")
	code, err := c.Transfer(t.Context(), "kf1", "ann", wecom.StateServicer, "bob")
	r.ok(err)
	state, servicer, err := c.State(t.Context(), "kf1", "ann")
	if err != nil || state != wecom.StateServicer || servicer != "bob" {
		t.Error(state, servicer, err)
	}
	if err := c.ReplyTo(m).Text(t.Context(), "hi"); wecom.Code(err) != wecom.CodeState {
		t.Error(err)
	}
	if _, err := c.SendOnEvent(t.Context(), code,
		wecom.Reply{Text: &wecom.Text{Content: "bob will help you"}}); err != nil {
		t.Error(err)
	}
}

func TestMedia(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{MediaCache: 10_000})
	c := r.p.Client()
	id, err := c.Upload(t.Context(), wecom.KindImage, "a.png", bytes.Repeat([]byte("a"), 6000))
	r.ok(err)
	r.vendor.Store("b", bytes.Repeat([]byte("b"), 6000))
	r.vendor.Store("large", bytes.Repeat([]byte("c"), 10_001))
	for _, step := range []struct {
		id    string
		calls int // downloads so far
	}{{id, 1}, {id, 1}, {"b", 2}, {"b", 2}, {id, 3}, {"large", 4}, {"large", 5}, {id, 5}} {
		content, err := c.Media(t.Context(), step.id)
		if n := r.vendor.Calls("media/get"); err != nil || len(content) < 6000 || n != step.calls {
			t.Errorf("%s: %d bytes, %v, %d downloads, want %d", step.id, len(content), err, n, step.calls)
		}
	}
	if _, err := c.Media(t.Context(), "none"); !errors.Is(err, ferry.ErrRefused) {
		t.Error(err)
	}
	if _, err := c.Upload(t.Context(), wecom.KindVoice, "v.amr", make([]byte, 3<<20)); !errors.Is(err, ferry.ErrTooLarge) {
		t.Error(err)
	}
}

// Files without content have their place in the cache, too: however many there are, few are kept.
func TestMediaCacheOfEmptyFiles(t *testing.T) {
	t.Parallel()
	c := wecom.NewMediaCache(10_000)
	for i := range 1000 {
		c.Put(strconv.Itoa(i), nil)
	}
	if n := c.Len(); n == 0 || n > 40 {
		t.Errorf("%d files are kept", n)
	}
}

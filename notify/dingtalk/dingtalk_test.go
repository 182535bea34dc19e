package dingtalk_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/dingtalk"
	"github.com/ferrymq/ferry/notify/internal/vendortest"
)

func open(t *testing.T, r notify.Robot) *dingtalk.Channel {
	t.Helper()
	c, err := dingtalk.New(dingtalk.Options{Robots: map[string]notify.Robot{"ops": r}, HTTP: vendortest.Local})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// enforce answers as DingTalk does, signature and time included.
func enforce(r *http.Request, _ []byte) (int, string) {
	q := r.URL.Query()
	ms, _ := strconv.ParseInt(q.Get("timestamp"), 10, 64)
	if q.Get("access_token") != "tok" {
		return 200, `{"errcode":300005,"errmsg":"token is not exist"}`
	}
	if q.Get("sign") != dingtalk.Sign(vendortest.Secret, q.Get("timestamp")) ||
		time.Since(time.UnixMilli(ms)).Abs() > time.Hour {
		return 200, `{"errcode":310000,"errmsg":"sign not match"}`
	}
	return 200, `{"errcode":0,"errmsg":"ok"}`
}

// The value was computed with openssl dgst -sha256 -hmac.
func TestSign(t *testing.T) {
	if got := dingtalk.Sign("this is secret", "1577262236757"); got != "hmPWwU+7lVdm3ZZz0r9tSfx0L4Q26jWOZr9+Gs6EZQM=" {
		t.Errorf("got %s", got)
	}
}

func TestSend(t *testing.T) {
	v := vendortest.New(t, enforce)
	c := open(t, notify.Robot{URL: v.URL + "/robot/send?access_token=tok", Secret: vendortest.Secret, Keyword: "ferry"})
	_, err := c.Send(t.Context(), notify.Rendered{To: "ops", Title: "标题", Body: "a < b", Format: notify.Text})
	vendortest.WantCode(t, err, "")
	var text struct {
		Type string                   `json:"msgtype"`
		Text struct{ Content string } `json:"text"`
	}
	v.Last(&text)
	if text.Type != "text" || text.Text.Content != "标题\na < b\nferry" {
		t.Errorf("%+v arrived", text)
	}
	_, err = c.Send(t.Context(), notify.Rendered{To: "ops", Title: "t", Body: "**b**", Format: notify.Markdown,
		Data: map[string]string{"at_mobiles": "138, 139", "at_all": "true"}})
	vendortest.WantCode(t, err, "")
	var md struct {
		Markdown struct{ Title, Text string } `json:"markdown"`
		At       struct {
			AtMobiles []string
			IsAtAll   bool
		} `json:"at"`
	}
	v.Last(&md)
	if md.Markdown.Title != "t" || !strings.Contains(md.Markdown.Text, "@139") || len(md.At.AtMobiles) != 2 ||
		!md.At.IsAtAll {
		t.Errorf("%+v arrived", md)
	}
}

func TestErrors(t *testing.T) {
	for answer, want := range map[string]notify.Code{
		`{"errcode":310000,"errmsg":"sign not match SEC-very-secret"}`: notify.CodeAuth,
		`{"errcode":310000,"errmsg":"keywords not in content"}`:        notify.CodeContent,
		`{"errcode":130101,"errmsg":"send too fast"}`:                  notify.CodeRateLimit,
		`{"errcode":-1,"errmsg":"busy"}`:                               notify.CodeUnavailable,
		`{"errcode":300005,"errmsg":"token is not exist"}`:             notify.CodeInvalidTarget,
		`{"errcode":400013,"errmsg":"x"}`:                              notify.CodeInvalidMessage,
		`<html>`:                                                       notify.CodeUnavailable,
	} {
		v := vendortest.New(t, vendortest.Always(200, answer))
		c := open(t, notify.Robot{URL: v.URL + "?access_token=tok1234", Secret: vendortest.Secret})
		_, err := c.Send(t.Context(), notify.Rendered{To: "ops", Body: "b"})
		if e := vendortest.WantCode(t, err, want); want == notify.CodeRateLimit && e.After != 10*time.Minute {
			t.Errorf("after %v", e.After)
		}
	}
	v := vendortest.New(t, vendortest.Always(500, "oops "+vendortest.Secret))
	c := open(t, notify.Robot{URL: v.URL, Secret: vendortest.Secret})
	_, err := c.Send(t.Context(), notify.Rendered{To: "ops", Body: "b"})
	vendortest.WantCode(t, err, notify.CodeUnavailable)
	_, err = c.Send(t.Context(), notify.Rendered{To: "other", Body: "b"})
	vendortest.WantCode(t, err, notify.CodeInvalidTarget)
}

func TestWrongRobots(t *testing.T) {
	for name, r := range map[string]notify.Robot{
		"no secret": {URL: "https://oapi.dingtalk.com/robot/send?access_token=x"},
		"no URL":    {Secret: "x"},
		"private":   {URL: "http://10.0.0.1/", Secret: "x"},
	} {
		_, err := dingtalk.New(dingtalk.Options{Robots: map[string]notify.Robot{"ops": r}})
		if !errors.Is(err, ferry.ErrInvalid) && !errors.Is(err, ferry.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := dingtalk.New(dingtalk.Options{}); !errors.Is(err, ferry.ErrInvalid) {
		t.Errorf("no robot: %v", err)
	}
}

package wecomrobot_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/internal/vendortest"
	"github.com/ferrymq/ferry/notify/wecomrobot"
)

type message struct {
	Type string `json:"msgtype"`
	Text struct {
		Content  string   `json:"content"`
		Mentions []string `json:"mentioned_list"`
	} `json:"text"`
	Markdown struct{ Content string } `json:"markdown_v2"`
}

// enforce answers as WeCom does: the key and the lengths.
func enforce(r *http.Request, body []byte) (int, string) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return 200, `{"errcode":40008,"errmsg":"invalid message type"}`
	}
	switch {
	case r.URL.Query().Get("key") != vendortest.Secret:
		return 200, `{"errcode":93000,"errmsg":"invalid webhook url"}`
	case len(m.Text.Content) > 2048 || len(m.Markdown.Content) > 4096:
		return 200, `{"errcode":40058,"errmsg":"content exceed max length"}`
	}
	return 200, `{"errcode":0,"errmsg":"ok"}`
}

func open(t *testing.T, url string) *wecomrobot.Channel {
	t.Helper()
	c, err := wecomrobot.New(wecomrobot.Options{Robots: map[string]notify.Robot{"ops": {URL: url}},
		HTTP: vendortest.Local})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestSend(t *testing.T) {
	v := vendortest.New(t, enforce)
	c := open(t, v.URL+"/cgi-bin/webhook/send?key="+vendortest.Secret)
	longest := strings.Repeat("题", notify.MaxTitle)
	for _, format := range []notify.Format{notify.Text, notify.Markdown} { // the limits leave room for the longest title
		r := notify.Rendered{To: "ops", Title: longest, Body: strings.Repeat("x", c.Limits().MaxBytes[format]),
			Format: format,
			Part:   10, Parts: 12}
		_, err := c.Send(t.Context(), r)
		vendortest.WantCode(t, err, "")
	}
	r := notify.Rendered{To: "ops", Title: "t", Body: "b", Format: notify.Markdown,
		Data: map[string]string{"mention": "@all,li"}}
	if n := c.Sends(r); n != 2 {
		t.Errorf("%d sends", n)
	}
	before := v.Count()
	_, err := c.Send(t.Context(), r)
	vendortest.WantCode(t, err, "")
	var m message
	v.Last(&m)
	if m.Type != "markdown_v2" || !strings.Contains(m.Markdown.Content, "<@li>") || v.Count() != before+2 {
		t.Errorf("%+v arrived", m)
	}
	r.Format = notify.Text
	_, err = c.Send(t.Context(), r)
	vendortest.WantCode(t, err, "")
	v.Last(&m)
	if len(m.Text.Mentions) != 2 || v.Count() != before+3 {
		t.Errorf("%+v arrived", m)
	}
}

func TestErrors(t *testing.T) {
	v := vendortest.New(t, enforce)
	_, err := open(t, v.URL+"/?key=wrong").Send(t.Context(), notify.Rendered{To: "ops", Body: "b"})
	if e := vendortest.WantCode(t, err, notify.CodeInvalidTarget); e.Retryable() {
		t.Error("it is tried again")
	}
	for answer, want := range map[string]notify.Code{
		`{"errcode":45009,"errmsg":"api freq out of limit"}`: notify.CodeRateLimit,
		`{"errcode":40058,"errmsg":"content exceed"}`:        notify.CodeInvalidMessage,
		`{"errcode":-1,"errmsg":"system busy"}`:              notify.CodeUnavailable,
		`ok`:                                                 notify.CodeUnavailable,
	} {
		v := vendortest.New(t, vendortest.Always(200, answer))
		_, err := open(t, v.URL).Send(t.Context(), notify.Rendered{To: "ops", Body: "b"})
		vendortest.WantCode(t, err, want)
	}
}

package feishu_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/feishu"
	"github.com/ferrymq/ferry/notify/internal/vendortest"
)

func open(t *testing.T, url string) *feishu.Channel {
	t.Helper()
	robots := map[string]notify.Robot{"ops": {URL: url, Secret: vendortest.Secret}}
	c, err := feishu.New(feishu.Options{Robots: robots, HTTP: vendortest.Local})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// enforce answers as Feishu does: the signature is in the body, of seconds, and the body has 20 KB at most.
func enforce(_ *http.Request, body []byte) (int, string) {
	var m struct{ Timestamp, Sign string }
	if err := json.Unmarshal(body, &m); err != nil || len(body) > 20<<10 {
		return 200, `{"code":9499,"msg":"Bad Request"}`
	}
	seconds, _ := strconv.ParseInt(m.Timestamp, 10, 64)
	if m.Sign != feishu.Sign(vendortest.Secret, m.Timestamp) || time.Since(time.Unix(seconds, 0)).Abs() > time.Hour {
		return 200, `{"code":19021,"msg":"sign match fail or timestamp is not within one hour from current time"}`
	}
	return 200, `{"code":0,"msg":"success"}`
}

// The value was computed with openssl dgst -sha256 -mac HMAC of nothing: key and message are the reverse of DingTalk's.
func TestSign(t *testing.T) {
	if got := feishu.Sign("demo", "1599360473"); got != "l1N0gAcBjdwBvGm1xMjOF0XSyaLRpR7tuO5dHfhAYc8=" {
		t.Errorf("got %s", got)
	}
}

func TestSend(t *testing.T) {
	v := vendortest.New(t, enforce)
	c := open(t, v.URL)
	_, err := c.Send(t.Context(), notify.Rendered{To: "ops", Title: "标题", Body: "a < b"})
	vendortest.WantCode(t, err, "")
	var text struct {
		Type    string                `json:"msg_type"`
		Content struct{ Text string } `json:"content"`
	}
	v.Last(&text)
	if text.Type != "text" || text.Content.Text != "标题\na < b" {
		t.Errorf("%+v arrived", text)
	}
	long := notify.Rendered{To: "ops", Title: "t", Body: strings.Repeat("\n", 8000), Format: notify.Markdown}
	_, err = c.Send(t.Context(), long)
	vendortest.WantCode(t, err, "")
	var card struct {
		Type string `json:"msg_type"`
		Card struct {
			Elements []struct{ Tag, Content string } `json:"elements"`
		} `json:"card"`
	}
	v.Last(&card)
	if card.Type != "interactive" || card.Card.Elements[0].Content != long.Body {
		t.Errorf("%+v arrived", card)
	}
	long.Body = strings.Repeat("\n", 20<<10)
	_, err = c.Send(t.Context(), long)
	vendortest.WantCode(t, err, notify.CodeInvalidMessage)
}

func TestErrors(t *testing.T) {
	for answer, want := range map[string]notify.Code{
		`{"code":19021,"msg":"sign match fail SEC-very-secret"}`: notify.CodeAuth,
		`{"code":19024,"msg":"Key Words Not Found"}`:             notify.CodeContent,
		`{"code":11232,"msg":"frequency limited"}`:               notify.CodeRateLimit,
		`{"code":19001,"msg":"param invalid"}`:                   notify.CodeInvalidTarget,
		`{"code":9499,"msg":"Bad Request"}`:                      notify.CodeInvalidMessage,
		`{}`:                                                     notify.CodeUnavailable,
	} {
		v := vendortest.New(t, vendortest.Always(200, answer))
		_, err := open(t, v.URL).Send(t.Context(), notify.Rendered{To: "ops", Body: "b"})
		vendortest.WantCode(t, err, want)
	}
}

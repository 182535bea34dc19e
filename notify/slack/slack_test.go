package slack_test

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/internal/vendortest"
	"github.com/ferrymq/ferry/notify/slack"
)

func open(t *testing.T, url string) *slack.Channel {
	t.Helper()
	c, err := slack.New(slack.Options{Webhooks: map[string]notify.Robot{"ops": {URL: url}}, HTTP: vendortest.Local})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestSend(t *testing.T) {
	v := vendortest.New(t, vendortest.Always(200, "ok"))
	c := open(t, v.URL+"/services/"+vendortest.Secret)
	for format, want := range map[notify.Format]string{
		notify.Text:     "*a &amp; b*\n&lt;!channel&gt; **x** [l](https://e.com/)",
		notify.Markdown: "*a &amp; b*\n&lt;!channel&gt; *x* <https://e.com/|l>",
	} {
		_, err := c.Send(t.Context(), notify.Rendered{To: "ops", Title: "a & b",
			Body: "<!channel> **x** [l](https://e.com/)", Format: format})
		vendortest.WantCode(t, err, "")
		var m struct{ Text string }
		if v.Last(&m); m.Text != want {
			t.Errorf("%s: %q arrived", format, m.Text)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		status int
		answer string
		want   notify.Code
	}{
		{400, "invalid_payload", notify.CodeInvalidMessage},
		{403, "action_prohibited", notify.CodeAuth},
		{404, "no_service", notify.CodeInvalidTarget},
		{410, "channel_is_archived", notify.CodeInvalidTarget},
		{500, "rollup_error", notify.CodeUnavailable},
		{200, "not ok " + vendortest.Secret, notify.CodeUnavailable},
		{429, "", notify.CodeRateLimit},
	} {
		v := vendortest.New(t, vendortest.Always(c.status, c.answer))
		_, err := open(t, v.URL+"/"+vendortest.Secret).Send(t.Context(), notify.Rendered{To: "ops", Body: "b"})
		if e := vendortest.WantCode(t, err, c.want); c.status == 429 && e.After != 7*time.Second {
			t.Errorf("after %v", e.After)
		}
	}
}

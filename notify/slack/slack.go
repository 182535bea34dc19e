// Package slack is the channel of Slack's incoming webhooks: about one message a second, with digests of what is more.
package slack

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/internal/vendor"
)

// Options of the channel.
type Options struct {
	// Webhooks by the names that targets use.
	Webhooks map[string]notify.Robot
	HTTP     notify.HTTP
}

// Channel sends to Slack.
type Channel struct{ *vendor.Book }

// New returns the channel, or says what is wrong with a webhook.
func New(o Options) (*Channel, error) {
	b, err := vendor.NewBook(o.Webhooks, o.HTTP, false)
	if err != nil {
		return nil, err
	}
	return &Channel{b}, nil
}

// Limits are Slack's. It shows 40,000 characters; escapes make five of one.
func (c *Channel) Limits() notify.Limits {
	return notify.Limits{
		Rates:    []notify.Rate{{Sends: 1, Per: time.Second}},
		MaxBytes: map[notify.Format]int{notify.Text: 7000, notify.Markdown: 7000},
		Split:    []notify.Format{notify.Text, notify.Markdown},
		Formats:  []notify.Format{notify.Text, notify.Markdown},
		Digest:   true,
	}
}

type message struct {
	Text     string `json:"text"`
	Markdown bool   `json:"mrkdwn"`
}

// Send sends one part to a webhook.
func (c *Channel) Send(ctx context.Context, r notify.Rendered) (notify.Sent, error) {
	hook, err := c.Robot(r.To)
	if err != nil {
		return notify.Sent{}, err
	}
	a, err := c.Post(ctx, hook, hook.URL, compose(r))
	var e *notify.Error
	if errors.As(err, &e) {
		return notify.Sent{}, judge(e, string(a.Body))
	}
	if text := strings.TrimSpace(string(a.Body)); err == nil && text != "ok" {
		return notify.Sent{}, judge(&notify.Error{Code: notify.CodeUnavailable,
			Text: "Slack answered: " + vendor.Excerpt(a.Body, vendor.Secrets(hook)...)}, text)
	}
	return notify.Sent{}, err
}

// judge reads Slack's words, which say more than the status.
func judge(e *notify.Error, word string) error {
	switch strings.TrimSpace(word) {
	case "channel_not_found", "channel_is_archived", "no_service", "no_service_id", "no_team", "user_not_found":
		e.Code, e.Hint = notify.CodeInvalidTarget, "see whether the webhook and its channel still exist"
	case "invalid_token", "no_active_hooks", "action_prohibited", "team_disabled":
		e.Code, e.Hint = notify.CodeAuth, "see whether the webhook was revoked"
	case "posting_to_general_channel_denied":
		e.Code = notify.CodeAuth
	case "invalid_payload", "no_text", "too_many_attachments":
		e.Code = notify.CodeInvalidMessage
	case "rollup_error":
		e.Code = notify.CodeUnavailable
	}
	return e
}

func compose(r notify.Rendered) message {
	title := ""
	if r.Title != "" {
		title = "*" + escape(r.Heading()) + "*\n"
	}
	if r.Format == notify.Markdown {
		return message{title + mrkdwn(escape(r.Body)), true}
	}
	return message{title + escape(r.Body), true}
}

// escape writes what Slack would read as its own marks.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

var (
	bold = regexp.MustCompile(`\*\*([^*\n]+)\*\*`)
	link = regexp.MustCompile(`\[([^\]\n]+)\]\((https?://[^)\s]+)\)`)
)

// mrkdwn turns what common markdown writes otherwise than Slack.
func mrkdwn(text string) string {
	return link.ReplaceAllString(bold.ReplaceAllString(text, "*$1*"), "<$2|$1>")
}

// Package feishu is the channel of Feishu's (Lark's) group robots: signed, 100 messages a minute and 5 a second, with
// digests of what is more. Markdown is sent as a card.
package feishu

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/internal/safehttp"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/internal/vendor"
)

// Options of the channel.
type Options struct {
	// Robots by the names that targets use.
	Robots map[string]notify.Robot
	HTTP   notify.HTTP
}

// Channel sends to Feishu.
type Channel struct{ *vendor.Book }

// New returns the channel, or says what is wrong with a robot.
func New(o Options) (*Channel, error) {
	b, err := vendor.NewBook(o.Robots, o.HTTP, true)
	if err != nil {
		return nil, err
	}
	return &Channel{b}, nil
}

const (
	// maxRequest is how many bytes Feishu takes.
	maxRequest = 20 << 10
	// throttled is how long we wait after Feishu refused too many, which it also does at full and half hours, when
	// everybody sends.
	throttled = 5 * time.Second
)

// Limits are Feishu's.
func (c *Channel) Limits() notify.Limits {
	return notify.Limits{
		Rates:    []notify.Rate{{Sends: 5, Per: time.Second}, {Sends: 100, Per: time.Minute}},
		MaxBytes: map[notify.Format]int{notify.Text: 8000, notify.Markdown: 8000},
		Split:    []notify.Format{notify.Text, notify.Markdown},
		Formats:  []notify.Format{notify.Text, notify.Markdown},
		Digest:   true,
	}
}

type message struct {
	Timestamp string         `json:"timestamp,omitempty"`
	Sign      string         `json:"sign,omitempty"`
	Type      string         `json:"msg_type"`
	Content   map[string]any `json:"content,omitempty"`
	Card      map[string]any `json:"card,omitempty"`
}

// Send sends one part to a robot.
func (c *Channel) Send(ctx context.Context, r notify.Rendered) (notify.Sent, error) {
	robot, err := c.Robot(r.To)
	if err != nil {
		return notify.Sent{}, err
	}
	m := compose(robot, r)
	if robot.Secret != "" {
		m.Timestamp = strconv.FormatInt(time.Now().Unix(), 10)
		m.Sign = Sign(robot.Secret, m.Timestamp)
	}
	body, err := vendor.JSON(m)
	if err != nil {
		return notify.Sent{}, err
	}
	if len(body) > maxRequest {
		return notify.Sent{}, &notify.Error{Code: notify.CodeInvalidMessage, Hint: "shorten it",
			Text: fmt.Sprintf("the request has %d bytes, more than %d", len(body), maxRequest)}
	}
	a, err := c.Do(ctx, vendor.Call{URL: robot.URL, Header: vendor.JSONHeader(), Body: body,
		Secrets: vendor.Secrets(robot)})
	if err != nil {
		return notify.Sent{}, err
	}
	return notify.Sent{}, judge(a, vendor.Secrets(robot)...)
}

func compose(robot notify.Robot, r notify.Rendered) message {
	if r.Format != notify.Markdown { // in a text of Feishu's a tag mentions people, all of them for example
		text := notify.Literal(r.Content())
		return message{Type: "text", Content: map[string]any{"text": vendor.WithKeyword(robot, text)}}
	}
	colour := "blue"
	if r.Priority >= notify.High {
		colour = "red"
	}
	title := map[string]any{"tag": "plain_text", "content": r.Heading()}
	body := map[string]any{"tag": "markdown", "content": vendor.WithKeyword(robot, r.Body)}
	return message{Type: "interactive", Card: map[string]any{
		"header": map[string]any{"title": title, "template": colour}, "elements": []any{body}}}
}

// Sign is Feishu's signature of a time in seconds: time and secret are the key, and what is signed is empty.
func Sign(secret, seconds string) string {
	h := hmac.New(sha256.New, []byte(seconds+"\n"+secret))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// judge reads the answer: status 200 says nothing yet.
func judge(a safehttp.Answer, secrets ...string) error {
	var got struct {
		Code *int   `json:"code"`
		Text string `json:"msg"`
	}
	if err := a.JSON(&got); err != nil || got.Code == nil {
		return &notify.Error{Code: notify.CodeUnavailable, Text: "the answer is not Feishu's",
			Hint: "see whether the address is right"}
	}
	if *got.Code == 0 {
		return nil
	}
	e := &notify.Error{Code: notify.CodeInvalidMessage,
		Text: fmt.Sprintf("Feishu error %d: %s", *got.Code, safehttp.Hide(got.Text, secrets...))}
	switch *got.Code {
	case 11232: // too many
		e.Code, e.After = notify.CodeRateLimit, throttled
	case 19021:
		e.Code, e.Hint = notify.CodeAuth, "compare the secret with the robot's, and the clock with the time"
	case 19022:
		e.Code, e.Hint = notify.CodeAuth, "allow the address of this host in the robot's settings"
	case 19024:
		e.Code, e.Hint = notify.CodeContent, "set Robot.Keyword"
	case 19001, 19002:
		e.Code, e.Hint = notify.CodeInvalidTarget, "see whether the robot still exists"
	case 11246, 11247:
		e.Code = notify.CodeContent
	}
	return e
}

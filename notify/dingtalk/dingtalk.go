// Package dingtalk is the channel of DingTalk's group robots: signed, 20 messages a minute, with digests of what is
// more.
//
// Data that it knows: "at_mobiles", numbers separated by commas, and "at_all", "true".
package dingtalk

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
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

// Channel sends to DingTalk.
type Channel struct{ *vendor.Book }

// New returns the channel, or says what is wrong with a robot.
func New(o Options) (*Channel, error) {
	b, err := vendor.NewBook(o.Robots, o.HTTP, true)
	if err != nil {
		return nil, err
	}
	return &Channel{b}, nil
}

// throttled is for how long DingTalk refuses a robot that sent too much.
const throttled = 10 * time.Minute

// Limits are DingTalk's. A message has 20,000 bytes at most, of which the title and the frame take some.
func (c *Channel) Limits() notify.Limits {
	return notify.Limits{
		Rates:    []notify.Rate{{Sends: 20, Per: time.Minute}},
		MaxBytes: map[notify.Format]int{notify.Text: 15000, notify.Markdown: 15000},
		Split:    []notify.Format{notify.Text, notify.Markdown},
		Formats:  []notify.Format{notify.Text, notify.Markdown},
		Digest:   true,
	}
}

type message struct {
	Type     string    `json:"msgtype"`
	Text     *text     `json:"text,omitempty"`
	Markdown *markdown `json:"markdown,omitempty"`
	At       at        `json:"at"`
}

type text struct {
	Content string `json:"content"`
}

type markdown struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

type at struct {
	Mobiles []string `json:"atMobiles,omitempty"`
	All     bool     `json:"isAtAll,omitempty"`
}

// Send sends one part to a robot.
func (c *Channel) Send(ctx context.Context, r notify.Rendered) (notify.Sent, error) {
	robot, err := c.Robot(r.To)
	if err != nil {
		return notify.Sent{}, err
	}
	to, err := signed(robot, time.Now())
	if err != nil {
		return notify.Sent{}, err
	}
	a, err := c.Post(ctx, robot, to, compose(robot, r))
	if err != nil {
		return notify.Sent{}, err
	}
	return notify.Sent{}, judge(a, vendor.Secrets(robot)...)
}

func compose(robot notify.Robot, r notify.Rendered) message {
	m := message{Type: "text", At: at{Mobiles: vendor.List(r.Data["at_mobiles"]), All: r.Data["at_all"] == "true"}}
	if r.Format != notify.Markdown {
		m.Text = &text{vendor.WithKeyword(robot, r.Content())}
		return m
	}
	body := "#### " + notify.Literal(r.Heading()) + "\n" + r.Body
	for _, mobile := range m.At.Mobiles { // a markdown message mentions only whom its text names
		body += " @" + mobile
	}
	m.Type, m.Markdown = "markdown", &markdown{r.Heading(), vendor.WithKeyword(robot, body)}
	return m
}

// signed adds the signature to a robot's address.
func signed(r notify.Robot, now time.Time) (string, error) {
	if r.Secret == "" {
		return r.URL, nil
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return "", &notify.Error{Code: notify.CodeInvalidConfig, Text: "the address of a robot is no URL",
			Hint: "correct it"}
	}
	ms := strconv.FormatInt(now.UnixMilli(), 10)
	q := u.Query()
	q.Set("timestamp", ms)
	q.Set("sign", Sign(r.Secret, ms))
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Sign is DingTalk's signature of a time in milliseconds: the secret is both the key and part of what is signed.
func Sign(secret, ms string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(ms + "\n" + secret))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// judge reads the answer: status 200 says nothing yet.
func judge(a safehttp.Answer, secrets ...string) error {
	var got struct {
		Code *int   `json:"errcode"`
		Text string `json:"errmsg"`
	}
	if err := a.JSON(&got); err != nil || got.Code == nil {
		return &notify.Error{Code: notify.CodeUnavailable, Text: "the answer is not DingTalk's",
			Hint: "see whether the address is right"}
	}
	if *got.Code == 0 {
		return nil
	}
	e := &notify.Error{Code: notify.CodeInvalidMessage,
		Text: fmt.Sprintf("DingTalk error %d: %s", *got.Code, safehttp.Hide(got.Text, secrets...))}
	switch *got.Code {
	case -1, 130102: // busy
		e.Code = notify.CodeUnavailable
	case 130101, 410100, 660026: // too many
		e.Code, e.After = notify.CodeRateLimit, throttled
	case 310000: // security settings: the signature, the address, or a keyword
		e.Code, e.Hint = notify.CodeAuth, "compare secret, keyword and allowed addresses with the robot's settings"
		if strings.Contains(got.Text, "keywords") {
			e.Code, e.Hint = notify.CodeContent, "set Robot.Keyword"
		}
	case 300001, 300005, 400101, 40035: // no such token
		e.Code, e.Hint = notify.CodeInvalidTarget, "see whether the robot still exists"
	case 430101, 430102, 430103, 430104: // unsafe links, improper words
		e.Code = notify.CodeContent
	}
	return e
}

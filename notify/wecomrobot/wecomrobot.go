// Package wecomrobot is the channel of WeCom's group robots: 20 messages a minute, with digests of what is more. The
// key is in the address.
//
// Data that it knows: "mention", user ids separated by commas, or "@all". Markdown cannot mention all, so a text that
// does follows it.
package wecomrobot

import (
	"context"
	"fmt"
	"slices"
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

// Channel sends to WeCom.
type Channel struct{ *vendor.Book }

// New returns the channel, or says what is wrong with a robot.
func New(o Options) (*Channel, error) {
	b, err := vendor.NewBook(o.Robots, o.HTTP, false)
	if err != nil {
		return nil, err
	}
	return &Channel{b}, nil
}

const (
	maxText     = 2048 // bytes of content, the title included
	maxMarkdown = 4096
	maxTitle    = 4*notify.MaxTitle + 20 // bytes, with the number of the part

	throttled = time.Minute
)

// Limits are WeCom's.
func (c *Channel) Limits() notify.Limits {
	return notify.Limits{
		Rates:    []notify.Rate{{Sends: 20, Per: time.Minute}},
		MaxBytes: map[notify.Format]int{notify.Text: maxText - maxTitle, notify.Markdown: maxMarkdown - maxTitle},
		Split:    []notify.Format{notify.Text, notify.Markdown},
		Formats:  []notify.Format{notify.Text, notify.Markdown},
		Digest:   true,
	}
}

type message struct {
	Type     string   `json:"msgtype"`
	Text     *content `json:"text,omitempty"`
	Markdown *content `json:"markdown_v2,omitempty"`
}

type content struct {
	Content  string   `json:"content"`
	Mentions []string `json:"mentioned_list,omitempty"`
}

const everybody = "@all"

// Sends is how many messages of WeCom's a notification is.
func (c *Channel) Sends(r notify.Rendered) int { return len(compose(r)) }

// Send sends one part to a robot.
func (c *Channel) Send(ctx context.Context, r notify.Rendered) (notify.Sent, error) {
	robot, err := c.Robot(r.To)
	if err != nil {
		return notify.Sent{}, err
	}
	for _, m := range compose(r) {
		a, err := c.Post(ctx, robot, robot.URL, m)
		if err != nil {
			return notify.Sent{}, err
		}
		if err := judge(a, vendor.Secrets(robot)...); err != nil {
			return notify.Sent{}, err
		}
	}
	return notify.Sent{}, nil
}

// compose is one message, or two where markdown cannot say all. The mention comes first: should the second fail, both
// are sent again, and nobody is left without a mention.
func compose(r notify.Rendered) []message {
	mentions := vendor.List(r.Data["mention"])
	if r.Format != notify.Markdown {
		return []message{{Type: "text", Text: &content{notify.Literal(r.Content()), mentions}}}
	}
	body := "#### " + notify.Literal(r.Heading()) + "\n" + r.Body
	for _, user := range mentions {
		if user != everybody {
			body += " <@" + user + ">"
		}
	}
	m := message{Type: "markdown_v2", Markdown: &content{Content: body}}
	if !slices.Contains(mentions, everybody) || r.Part > 1 {
		return []message{m}
	}
	return []message{{Type: "text", Text: &content{r.Title, []string{everybody}}}, m}
}

// judge reads the answer: status 200 says nothing yet.
func judge(a safehttp.Answer, secrets ...string) error {
	var got struct {
		Code *int   `json:"errcode"`
		Text string `json:"errmsg"`
	}
	if err := a.JSON(&got); err != nil || got.Code == nil {
		return &notify.Error{Code: notify.CodeUnavailable, Text: "the answer is not WeCom's",
			Hint: "see whether the address is right"}
	}
	if *got.Code == 0 {
		return nil
	}
	e := &notify.Error{Code: notify.CodeInvalidMessage,
		Text: fmt.Sprintf("WeCom error %d: %s", *got.Code, safehttp.Hide(got.Text, secrets...))}
	switch *got.Code {
	case -1: // busy
		e.Code = notify.CodeUnavailable
	case 45009, 45033: // too many
		e.Code, e.After = notify.CodeRateLimit, throttled
	case 93000, 93008, 40001:
		e.Code, e.Hint = notify.CodeInvalidTarget, "see whether the robot still exists and the key is right"
	case 40058, 45002, 45029:
		e.Hint = "shorten it"
	}
	return e
}

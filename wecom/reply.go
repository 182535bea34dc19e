package wecom

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// What the vendor allows of replies.
const (
	MaxReplies  = 5              // to one message of a customer
	ReplyWithin = 48 * time.Hour // after it
	MaxText     = 2048           // bytes of a text
	maxReplyID  = 32             // letters, digits, '_' and '-'
)

// Reply is a message to a customer. One of the pointers is set.
type Reply struct {
	// ID is unique in the account: 32 letters, digits, '_' and '-' at most. Empty: the vendor makes one.
	ID string

	Text        *Text
	Image       *Media
	Voice       *Media
	Video       *Media
	File        *Media
	Link        *Link
	MiniProgram *MiniProgram
	Menu        *Menu
	Location    *Location
}

// content returns the kind of a reply and what is in it.
func (r *Reply) content() (Kind, any, error) {
	contents := map[Kind]any{}
	set(contents, KindText, r.Text)
	set(contents, KindImage, r.Image)
	set(contents, KindVoice, r.Voice)
	set(contents, KindVideo, r.Video)
	set(contents, KindFile, r.File)
	set(contents, KindLink, r.Link)
	set(contents, KindMiniProgram, r.MiniProgram)
	set(contents, KindMenu, r.Menu)
	set(contents, KindLocation, r.Location)
	if len(contents) != 1 {
		return "", nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("a reply has %d contents", len(contents)),
			"set one of its fields", nil)
	}
	for kind, content := range contents {
		return kind, content, r.check()
	}
	return "", nil, nil
}

func set[T any](contents map[Kind]any, kind Kind, content *T) {
	if content != nil {
		contents[kind] = content
	}
}

// check says what the vendor would refuse.
func (r *Reply) check() error {
	if r.Text != nil && (r.Text.Content == "" || len(r.Text.Content) > MaxText) {
		return driver.NewError(ferry.ErrTooLarge, fmt.Sprintf("a reply has a text of %d bytes", len(r.Text.Content)),
			fmt.Sprintf("use 1 to %d bytes; longer ones can be split", MaxText), nil)
	}
	if len(r.ID) > maxReplyID {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("a reply has an id of %d bytes", len(r.ID)),
			fmt.Sprintf("use %d at most", maxReplyID), nil)
	}
	return nil
}

// Send sends a reply to a customer of an account, and returns its id. The vendor has the last word on how many are
// allowed; success does not mean that the customer got it: an event msg_send_fail tells if not.
func (c *Client) Send(ctx context.Context, account, user string, r Reply) (id string, err error) {
	return c.sendReply(ctx, "kf/send_msg", map[string]any{"touser": user, "open_kfid": account}, &r)
}

// SendOnEvent answers an event by its WelcomeCode or MessageCode, in states in which Send is not allowed: a text or a
// menu.
func (c *Client) SendOnEvent(ctx context.Context, code string, r Reply) (id string, err error) {
	return c.sendReply(ctx, "kf/send_msg_on_event", map[string]any{"code": code}, &r)
}

func (c *Client) sendReply(ctx context.Context, call string, fields map[string]any, r *Reply) (string, error) {
	kind, content, err := r.content()
	if err != nil {
		return "", err
	}
	fields["msgtype"], fields[string(kind)] = kind, content
	if r.ID != "" {
		fields["msgid"] = r.ID
	}
	var out struct {
		ID string `json:"msgid"`
	}
	err = c.call(ctx, call, fields, &out)
	return out.ID, err
}

// Conversation sends the replies to one message of a customer. It numbers them, so that a handler that runs again sends
// each under the id that it had before: the vendor takes an id once.
type Conversation struct {
	client *Client
	to     *Message

	mu   sync.Mutex
	sent int
}

// ReplyTo returns what replies to a message.
func (c *Client) ReplyTo(m *Message) *Conversation { return &Conversation{client: c, to: m} }

// Text replies with a text.
func (c *Conversation) Text(ctx context.Context, text string) error {
	return c.Send(ctx, Reply{Text: &Text{Content: text}})
}

// Send replies. The sixth reply, and one later than 48 hours after the message, is refused without asking the vendor.
func (c *Conversation) Send(ctx context.Context, r Reply) error {
	n := c.next()
	var late time.Duration
	if c.to.Sent > 0 { // otherwise the vendor has to judge
		late = time.Since(c.to.Time())
	}
	if n > MaxReplies || late > ReplyWithin {
		text := fmt.Sprintf("reply %d, %s after the message, is not allowed", n, late.Round(time.Second))
		return driver.NewError(ferry.ErrRefused, text,
			fmt.Sprintf("send %d replies at most, within %s, to a message of the customer", MaxReplies, ReplyWithin), nil)
	}
	if r.ID == "" {
		r.ID = replyID(c.to.ID, n)
	}
	_, err := c.client.Send(ctx, c.to.Account, c.to.User, r)
	return err
}

func (c *Conversation) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	return c.sent
}

// replyID is the id of the nth reply to a message.
func replyID(to string, n int) string {
	sum := sha256.Sum256([]byte(to + "/" + strconv.Itoa(n)))
	return hex.EncodeToString(sum[:maxReplyID/2])
}

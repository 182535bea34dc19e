package notify

import (
	"fmt"
	"maps"
	"mime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Bounds of a message.
const (
	MaxTitle       = 200  // characters
	MaxBody        = 4096 // characters
	MaxTargets     = 100
	MaxFallbacks   = 5       // of one target
	MaxAttachments = 4 << 20 // bytes of all attachments of a message
	maxTo          = 1024    // bytes of a destination
	maxAhead       = 100 * 365 * 24 * time.Hour
)

// The names of channels that the builder's own methods use.
const (
	EmailChannel   = "email"
	SMSChannel     = "sms"
	WebhookChannel = "webhook"
)

// Format is how a body is written.
type Format string

// Formats of a body. A channel that cannot show one gets plain text.
const (
	Text     Format = "text" // the default
	Markdown Format = "markdown"
	HTML     Format = "html"
)

// Priority is the lane of a message.
type Priority = ferry.Lane

// Priorities: bulk, ordinary, important, alarm.
const (
	Low    = ferry.Low
	Normal = ferry.Normal
	High   = ferry.High
	Urgent = ferry.Urgent
)

// Message is a notification to 1 to 100 targets. The methods that change it return it.
type Message struct {
	// ID names the message. Sent again under the same one it reaches no target twice. Defaults to a new one.
	ID string
	// Title has at most 200 characters and no line break, Body at most 4096. With Variables both are templates.
	Title, Body string
	Format      Format
	Priority    Priority
	Targets     []Target
	// Template is one of Options.Templates, which then gives title, body and format.
	Template  string
	Variables map[string]any
	// Data is for channels: each says which names it knows.
	Data map[string]string
	// Metadata goes along to webhooks and is shown nowhere else.
	Metadata    map[string]string
	Attachments []Attachment
	// At is when it is sent. Defaults to now.
	At time.Time
	// Retry says how often a target is tried. Defaults to Options.Retry.
	Retry *Retry
	// Digest collects messages to one destination into one. Defaults to none.
	Digest *Digest
}

// Target is one destination on one channel.
type Target struct {
	// Channel is a name of Options.Channels.
	Channel string `json:"channel"`
	// To is what the channel takes: an address, a number, the name of a robot, a URL.
	To string `json:"to"`
	// Fallbacks are tried in turn when this target has failed for good. Their own fallbacks must be empty.
	Fallbacks []Target `json:"fallbacks,omitempty"`
}

// Attachment is a file of a message. Channels that take none refuse it.
type Attachment struct {
	Name        string `json:"name"`
	ContentType string `json:"content_type,omitempty"`
	Data        []byte `json:"data"`
}

// NewMessage returns a message without targets.
func NewMessage(title, body string) *Message { return &Message{Title: title, Body: body} }

// WithID names the message.
func (m *Message) WithID(id string) *Message { m.ID = id; return m }

// WithFormat says how the body is written.
func (m *Message) WithFormat(f Format) *Message { m.Format = f; return m }

// WithPriority puts the message into a lane.
func (m *Message) WithPriority(p Priority) *Message { m.Priority = p; return m }

// WithScheduledTime has the message sent at t.
func (m *Message) WithScheduledTime(t time.Time) *Message { m.At = t; return m }

// WithTemplate takes title, body and format from one of Options.Templates.
func (m *Message) WithTemplate(name string, variables map[string]any) *Message {
	m.Template, m.Variables = name, variables
	return m
}

// WithVariable sets a variable; title and body are templates then.
func (m *Message) WithVariable(name string, value any) *Message {
	if m.Variables == nil {
		m.Variables = map[string]any{}
	}
	m.Variables[name] = value
	return m
}

// WithData sets a value for channels.
func (m *Message) WithData(name, value string) *Message {
	if m.Data == nil {
		m.Data = map[string]string{}
	}
	m.Data[name] = value
	return m
}

// WithMetadata sets a value that webhooks get.
func (m *Message) WithMetadata(name, value string) *Message {
	if m.Metadata == nil {
		m.Metadata = map[string]string{}
	}
	m.Metadata[name] = value
	return m
}

// WithRetry says how often a target is tried.
func (m *Message) WithRetry(r Retry) *Message { m.Retry = &r; return m }

// WithDigest collects messages to one destination into one, for a time or a number of them.
func (m *Message) WithDigest(d Digest) *Message { m.Digest = &d; return m }

// Attach adds a file.
func (m *Message) Attach(a Attachment) *Message { m.Attachments = append(m.Attachments, a); return m }

// AddTarget adds targets.
func (m *Message) AddTarget(ts ...Target) *Message { m.Targets = append(m.Targets, ts...); return m }

// AddEmail adds addresses of channel "email".
func (m *Message) AddEmail(addresses ...string) *Message { return m.add(EmailChannel, addresses) }

// AddPhone adds numbers of channel "sms".
func (m *Message) AddPhone(numbers ...string) *Message { return m.add(SMSChannel, numbers) }

// AddWebhook adds URLs of channel "webhook".
func (m *Message) AddWebhook(urls ...string) *Message { return m.add(WebhookChannel, urls) }

func (m *Message) add(channel string, to []string) *Message {
	for _, one := range to {
		m.Targets = append(m.Targets, Target{Channel: channel, To: one})
	}
	return m
}

// Build says what is wrong with the message whatever hub sends it, or returns it.
func (m *Message) Build() (*Message, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// invalid is the error of wrong input.
func invalid(hint, format string, args ...any) error {
	return driver.NewError(ferry.ErrInvalid, fmt.Sprintf(format, args...), hint, nil)
}

func (m *Message) check() error {
	switch {
	case m == nil:
		return invalid("make one with NewMessage", "the notification is nil")
	case len(m.Targets) == 0:
		return invalid("add one with AddTarget or AddEmail", "the notification has no target")
	case len(m.Targets) > MaxTargets:
		return invalid("send several notifications", "%d targets are more than %d", len(m.Targets), MaxTargets)
	case len(m.ID) > maxID || strings.Contains(m.ID, "/"):
		return invalid(fmt.Sprintf("use at most %d bytes without '/'", maxID),
			"the id of the notification is not usable")
	case !m.Priority.Valid():
		return invalid("use Low, Normal, High or Urgent", "the priority %d of the notification does not exist",
			m.Priority)
	case m.Format != "" && m.Format != Text && m.Format != Markdown && m.Format != HTML:
		return invalid("use text, markdown or html", "the format %q does not exist", m.Format)
	}
	for i, t := range m.Targets {
		if err := t.check(true); err != nil {
			return fmt.Errorf("target %d of %d: %w", i+1, len(m.Targets), err)
		}
	}
	return m.checkParts()
}

// checkParts checks what may be left out.
func (m *Message) checkParts() error {
	if m.Retry != nil {
		if err := m.Retry.check(); err != nil {
			return err
		}
	}
	if m.Digest != nil {
		if err := m.Digest.check(); err != nil {
			return err
		}
	}
	if time.Until(m.At) > maxAhead {
		return invalid("use one in the next 100 years", "the time of the notification is too far away")
	}
	size := 0
	for _, a := range m.Attachments {
		if a.Name == "" || strings.ContainsAny(a.Name, "\r\n\"/\\") {
			return invalid("use a plain file name", "the name %.60q of an attachment is not usable", a.Name)
		}
		if a.ContentType != "" && !isContentType(a.ContentType) {
			return invalid("write it as text/plain, or leave it out", "the content type %.60q of an attachment is not usable",
				a.ContentType)
		}
		size += len(a.Data)
	}
	if size > MaxAttachments {
		return invalid("send a link instead", "the attachments have %d bytes, more than %d", size, MaxAttachments)
	}
	if m.Digest != nil && len(m.Attachments) > 0 {
		return invalid("send it by itself", "a notification with attachments cannot be collected in a digest")
	}
	return nil
}

// isContentType reports whether a text is one. A line break in it would begin a header of its own.
func isContentType(text string) bool {
	_, _, err := mime.ParseMediaType(text)
	return err == nil && !strings.ContainsAny(text, "\r\n")
}

func (t Target) check(first bool) error {
	switch {
	case t.Channel == "":
		return invalid("name one of Options.Channels", "the target has no channel")
	case t.To == "" || len(t.To) > maxTo || !utf8.ValidString(t.To):
		return invalid(fmt.Sprintf("give 1 to %d bytes of text", maxTo), "the destination of a target is not usable")
	case strings.ContainsAny(t.To, "\r\n\x00"):
		return invalid("remove it", "the destination of a target has a line break")
	case len(t.Fallbacks) > MaxFallbacks:
		return invalid(fmt.Sprintf("use at most %d", MaxFallbacks), "the target has %d fallbacks", len(t.Fallbacks))
	case len(t.Fallbacks) > 0 && !first:
		return invalid("list all fallbacks at the target, in the order in which they are tried",
			"a fallback has fallbacks")
	}
	for _, f := range t.Fallbacks {
		if err := f.check(false); err != nil {
			return err
		}
	}
	return nil
}

// checkText checks title and body as they are sent.
func checkText(title, body string) error {
	switch n, b := utf8.RuneCountInString(title), utf8.RuneCountInString(body); {
	case title == "" && body == "":
		return invalid("give it a title or a body", "the notification is empty")
	case !utf8.ValidString(title) || !utf8.ValidString(body):
		return invalid("use UTF-8", "the notification is no text")
	case strings.ContainsAny(title, "\r\n"):
		return invalid("put further lines into the body", "the title has a line break")
	case n > MaxTitle:
		return invalid("put the rest into the body", "the title has %d characters, more than %d", n, MaxTitle)
	case b > MaxBody:
		return invalid("send a link to the rest", "the body has %d characters, more than %d", b, MaxBody)
	}
	return nil
}

// stages are a target and its fallbacks, in the order in which they are tried.
func (t Target) stages() []Target {
	first := t
	first.Fallbacks = nil
	return append([]Target{first}, t.Fallbacks...)
}

// clone returns a copy whose maps are the hub's own.
func (m *Message) clone() *Message {
	c := *m
	c.Variables, c.Data, c.Metadata = maps.Clone(m.Variables), maps.Clone(m.Data), maps.Clone(m.Metadata)
	return &c
}

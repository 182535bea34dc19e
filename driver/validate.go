package driver

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of names and metadata.
const (
	MaxNameLen    = 128
	MaxKeyLen     = 256
	MaxIDLen      = 128
	MaxHeaders    = 64
	MaxHeaderSize = 64 << 10
	MaxDedup      = 7 * 24 * time.Hour
)

// lastTime is the latest that a message can be due at: what nanoseconds since 1970 can say, in the year 2262.
var lastTime = time.Unix(0, math.MaxInt64).UTC()

// CheckName says what is wrong with the name of a topic or group ("what"), or nil.
func CheckName(what, name string) error {
	bad := name == "" || len(name) > MaxNameLen
	for i := 0; i < len(name) && !bad; i++ {
		c := name[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		bad = !alnum && (i == 0 || c != '.' && c != '_' && c != '-')
	}
	if !bad {
		return nil
	}
	return NewError(ErrInvalid, fmt.Sprintf("%s name %s is not allowed", what, quote(name)),
		"use 1 to 128 letters, digits, '.', '_' or '-', beginning with a letter or digit", nil)
}

// Reserved reports whether a topic is one of Ferry's own, which only Ferry publishes to and consumes. Looking at it,
// pausing it and deleting it are not forbidden.
func Reserved(topic string) bool { return strings.HasPrefix(topic, "ferry.") }

// CheckTopic says what is wrong with the name of a topic that a program publishes to or consumes, or nil. It is asked
// above the seam: what Ferry itself needs it does on the driver.
func CheckTopic(topic string) error {
	if err := CheckName("topic", topic); err != nil || !Reserved(topic) {
		return err
	}
	return NewError(ErrInvalid, fmt.Sprintf("topic %s is one of Ferry's own", quote(topic)),
		"use a name that does not begin with 'ferry.'", nil)
}

// checkText says what is wrong with a key or id: text that may contain anything printable.
func checkText(what, s string, limit int) error {
	if len(s) > limit {
		return NewError(ErrInvalid, fmt.Sprintf("%s of %d bytes is too long", what, len(s)),
			fmt.Sprintf("use at most %d bytes, a hash of it for example", limit), nil)
	}
	if !plain(s) && (!utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl)) {
		return NewError(ErrInvalid, fmt.Sprintf("%s %s contains control characters or is not UTF-8", what, quote(s)),
			"use printable UTF-8 text", nil)
	}
	return nil
}

// plain reports whether s is printable ASCII, as nearly all keys and ids are.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// quote shows hostile text on one bounded line.
func quote(s string) string { return strconv.QuoteToASCII(clip(s, 80)) }

// CheckPublish says what is wrong with a message that a driver is asked to store, or nil. Drivers call it first for
// each.
func (m *Message) CheckPublish(maxBody int) error {
	switch {
	case m == nil:
		return NewError(ErrInvalid, "a message is nil", "publish messages only", nil)
	case m.ID == "":
		return NewError(ErrInvalid, "the message has no id", "give each message its own", nil)
	}
	return m.Validate(maxBody)
}

// Validate says what is wrong with a message that is to be published, or nil. The ID may still be empty.
func (m *Message) Validate(maxBody int) error {
	if err := m.ValidateStored(); err != nil {
		return err
	}
	if len(m.Body) > maxBody {
		return NewError(ErrTooLarge, fmt.Sprintf("body of %d bytes exceeds the limit of %d", len(m.Body), maxBody),
			"store large data elsewhere and publish a reference to it", nil)
	}
	if m.Unique != nil {
		if err := m.Unique.check(m); err != nil {
			return err
		}
	}
	if m.At.After(lastTime) {
		return NewError(ErrInvalid, fmt.Sprintf("the time %s is too far away", m.At.UTC().Format(time.RFC3339)),
			fmt.Sprintf("use one until %s, or hold the message until it is moved", lastTime.Format(time.DateOnly)), nil)
	}
	return nil
}

// ValidateStored is Validate for a message that was stored, perhaps under other limits.
func (m *Message) ValidateStored() error {
	if err := CheckName("topic", m.Topic); err != nil {
		return err
	}
	if err := m.checkTexts(); err != nil {
		return err
	}
	if len(m.Headers) > 0 {
		if err := m.checkHeaders(); err != nil {
			return err
		}
	}
	if m.Retry != nil {
		if err := m.Retry.Validate(); err != nil {
			return err
		}
	}
	return m.checkNumbers()
}

func (m *Message) checkTexts() error {
	if err := checkText("key", m.Key, MaxKeyLen); err != nil {
		return err
	}
	if err := checkText("id", m.ID, MaxIDLen); err != nil {
		return err
	}
	if err := checkText("dedup id", m.DedupID, MaxIDLen); err != nil {
		return err
	}
	return checkText("content type", m.ContentType, MaxNameLen)
}

func (m *Message) checkHeaders() error {
	size := 0
	for k, v := range m.Headers {
		if k == "" {
			return NewError(ErrInvalid, "a header has no name", "give each header a name", nil)
		}
		if err := checkText("header name", k, MaxNameLen); err != nil {
			return err
		}
		size += len(k) + len(v)
	}
	if len(m.Headers) > MaxHeaders || size > MaxHeaderSize {
		return NewError(ErrTooLarge, fmt.Sprintf("%d headers with %d bytes are too many", len(m.Headers), size),
			fmt.Sprintf("use at most %d headers and %d bytes; data belongs in the body", MaxHeaders, MaxHeaderSize), nil)
	}
	return nil
}

func (m *Message) checkNumbers() error {
	switch {
	case !m.Priority.Valid():
		return NewError(ErrInvalid, fmt.Sprintf("priority %d does not exist", m.Priority),
			"use low, normal, high or urgent", nil)
	case m.Delay != 0 && !m.At.IsZero():
		return NewError(ErrInvalid, "both a delay and a schedule are set", "give a delay or a time, not both", nil)
	case m.TTL < 0:
		return NewError(ErrInvalid, fmt.Sprintf("TTL %v is negative", m.TTL),
			"leave it out for a message that never expires", nil)
	case m.TTL > 0 && m.Delay != Hold && m.Delay >= m.TTL:
		return NewError(ErrInvalid, fmt.Sprintf("TTL %v is not longer than the delay %v", m.TTL, m.Delay),
			"TTL counts from the publish: make it longer than the delay", nil)
	case m.DedupWindow < 0 || m.DedupWindow > MaxDedup:
		return NewError(ErrInvalid, fmt.Sprintf("dedup window %v is out of range", m.DedupWindow),
			fmt.Sprintf("use up to %v", MaxDedup), nil)
	case (m.DedupID == "") != (m.DedupWindow == 0):
		return NewError(ErrInvalid, "a dedup id needs a window, and a window an id", "set both", nil)
	case m.MaxAttempts < 0:
		return NewError(ErrInvalid, fmt.Sprintf("max attempts %d is negative", m.MaxAttempts),
			fmt.Sprintf("use 1 for no retry, %d for no end (Unlimited), or leave it out", Unlimited), nil)
	case m.MaxAttempts > Unlimited:
		return NewError(ErrInvalid, fmt.Sprintf("max attempts %d is out of range", m.MaxAttempts),
			fmt.Sprintf("use %d for no end (Unlimited)", Unlimited), nil)
	case m.OwnID && m.ID == "":
		return NewError(ErrInvalid, "the message id is empty", "leave the id out, or set one", nil)
	}
	return nil
}

// ParseRef reads what Ref.String wrote.
func ParseRef(s string) (Ref, error) {
	var r Ref
	parts := strings.SplitN(s, "-", 4)
	bad := len(parts) < 2 || len(parts) > 3
	for i, p := range parts {
		if bad {
			break
		}
		bits := 64
		if i == 0 {
			bits = 31
		}
		n, err := strconv.ParseUint(p, 10, bits)
		bad = err != nil
		switch i {
		case 0:
			r.Partition = int32(n)
		case 1:
			r.Pos = n
		case 2:
			r.Sub = n
		}
	}
	if bad {
		return Ref{}, NewError(ErrInvalid, fmt.Sprintf("%s is not a message reference", quote(s)), "it looks like 0-42", nil)
	}
	return r, nil
}

package driver_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"pgregory.net/rapid"
)

// wantError fails unless err is of this kind, says text, and says what to do.
func wantError(t *testing.T, name string, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v; want %v that says %q", name, err, kind, text)
		return
	}
	var e *driver.Error
	if !errors.As(err, &e) || e.Hint == "" {
		t.Errorf("%s: %v has no hint", name, err)
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	allowed := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z0-9._-]{0,140}`)).Draw(t, "name")
		err := driver.CheckName("topic", name)
		if (err == nil) != allowed.MatchString(name) {
			t.Fatalf("%q: %v", name, err)
		}
		if err != nil && !errors.Is(err, driver.ErrInvalid) {
			t.Fatalf("%v is not ErrInvalid", err)
		}
	})
	hostile := driver.CheckName("group", "a\x1b[31m\n"+strings.Repeat("x", 1<<20))
	wantError(t, "hostile", hostile, driver.ErrInvalid, `group name "a\x1b[31m\n`)
	if len(hostile.Error()) > 400 {
		t.Errorf("the error has %d bytes", len(hostile.Error()))
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	const maxBody = 1000
	headers := make(map[string]string)
	for i := range driver.MaxHeaders + 1 {
		headers[fmt.Sprint(i)] = ""
	}
	for _, c := range []struct {
		name   string
		change func(*driver.Message)
		kind   error // nil: valid
		says   string
	}{
		{"plain", func(*driver.Message) {}, nil, ""},
		{"largest body", func(m *driver.Message) { m.Body = make([]byte, maxBody) }, nil, ""},
		{"body too large", func(m *driver.Message) {
			m.Body = make([]byte, maxBody+1)
		}, driver.ErrTooLarge, "body of 1001 bytes"},
		{"no topic", func(m *driver.Message) { m.Topic = "" }, driver.ErrInvalid, "topic name"},
		{"braces in topic", func(m *driver.Message) { m.Topic = "a{b}" }, driver.ErrInvalid, "topic name"},
		{"key in any script", func(m *driver.Message) { m.Key = "客户 7" }, nil, ""},
		{"longest key", func(m *driver.Message) { m.Key = strings.Repeat("k", driver.MaxKeyLen) }, nil, ""},
		{"key too long", func(m *driver.Message) {
			m.Key = strings.Repeat("k", driver.MaxKeyLen+1)
		}, driver.ErrInvalid, "key of 257 bytes"},
		{"key with a line break", func(m *driver.Message) { m.Key = "a\nb" }, driver.ErrInvalid, `key "a\nb"`},
		{"key not UTF-8", func(m *driver.Message) { m.Key = "\xff" }, driver.ErrInvalid, "not UTF-8"},
		{"id too long", func(m *driver.Message) {
			m.ID = strings.Repeat("i", driver.MaxIDLen+1)
		}, driver.ErrInvalid, "id of 129 bytes"},
		{"own id", func(m *driver.Message) { m.ID, m.OwnID = "mine", true }, nil, ""},
		{"own id without id", func(m *driver.Message) { m.OwnID = true }, driver.ErrInvalid, "id is empty"},
		{"content type not text", func(m *driver.Message) { m.ContentType = "a\x00" }, driver.ErrInvalid, "content type"},
		{"header without name", func(m *driver.Message) {
			m.Headers = map[string]string{"": "v"}
		}, driver.ErrInvalid, "header has no name"},
		{"header name with tab", func(m *driver.Message) {
			m.Headers = map[string]string{"a\t": "v"}
		}, driver.ErrInvalid, "header name"},
		{"binary header value", func(m *driver.Message) { m.Headers = map[string]string{"a": "\x00\xff"} }, nil, ""},
		{"too many headers", func(m *driver.Message) { m.Headers = headers }, driver.ErrTooLarge, "65 headers"},
		{"headers too large", func(m *driver.Message) {
			m.Headers = map[string]string{"a": strings.Repeat("v", driver.MaxHeaderSize)}
		}, driver.ErrTooLarge, "1 headers with 65537 bytes"},
		{"priority too low", func(m *driver.Message) { m.Priority = driver.Low - 1 }, driver.ErrInvalid, "priority -2"},
		{"priority too high", func(m *driver.Message) { m.Priority = driver.Urgent + 1 }, driver.ErrInvalid, "priority 3"},
		{"delay and schedule", func(m *driver.Message) {
			m.Delay, m.At = 1, time.Unix(1, 0)
		}, driver.ErrInvalid, "both a delay and a schedule"},
		{"negative delay", func(m *driver.Message) { m.Delay = -1 }, nil, ""},
		{"negative TTL", func(m *driver.Message) { m.TTL = -1 }, driver.ErrInvalid, "TTL -1ns is negative"},
		{"TTL longer than delay", func(m *driver.Message) { m.Delay, m.TTL = time.Second, time.Second+1 }, nil, ""},
		{"TTL ends before delay", func(m *driver.Message) {
			m.Delay, m.TTL = time.Second, time.Second
		}, driver.ErrInvalid, "not longer than the delay"},
		{"held with TTL", func(m *driver.Message) { m.Delay, m.TTL = driver.Hold, time.Second }, nil, ""},
		{"dedup", func(m *driver.Message) { m.DedupID, m.DedupWindow = "d", driver.MaxDedup }, nil, ""},
		{"dedup without window", func(m *driver.Message) { m.DedupID = "d" }, driver.ErrInvalid, "needs a window"},
		{"window without dedup", func(m *driver.Message) { m.DedupWindow = 1 }, driver.ErrInvalid, "a window an id"},
		{"window too long", func(m *driver.Message) {
			m.DedupID, m.DedupWindow = "d", driver.MaxDedup+1
		}, driver.ErrInvalid, "out of range"},
		{"negative window", func(m *driver.Message) {
			m.DedupID, m.DedupWindow = "d", -1
		}, driver.ErrInvalid, "out of range"},
		{"endless attempts", func(m *driver.Message) {
			m.MaxAttempts = 1 << 40
		}, driver.ErrInvalid, "max attempts 1099511627776 is out of range"},
		{"negative attempts", func(m *driver.Message) { m.MaxAttempts = -1 }, driver.ErrInvalid, "max attempts -1"},
	} {
		m := &driver.Message{Topic: "orders"}
		c.change(m)
		err := m.Validate(maxBody)
		if c.kind != nil {
			wantError(t, c.name, err, c.kind, c.says)
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestRefText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := driver.Ref{Partition: rapid.Int32Min(0).Draw(t, "partition"), Pos: rapid.Uint64().Draw(t, "pos"),
			Sub: rapid.Uint64().Draw(t, "sub")}
		if got, err := driver.ParseRef(want.String()); got != want || err != nil {
			t.Fatalf("%v came back as %v, %v", want, got, err)
		}
	})
	if got := (driver.Ref{Partition: 3, Pos: 42}).String(); got != "3-42" {
		t.Errorf("without sub: %s", got)
	}
	if got := (driver.Ref{Partition: 3, Pos: 42, Sub: 7}).String(); got != "3-42-7" {
		t.Errorf("with sub: %s", got)
	}
	for _, s := range []string{"", "-", "42", "1-", "-1-2", "1-2-3-4", "1-x", "1-+2", " 1-2", "2147483648-1",
		"0-18446744073709551616", "1_0-2", "0x1-2", "１-2", "1-2\x00", strings.Repeat("-", 1<<20),
		strings.Repeat("1", 1<<20) + "-1"} {
		got, err := driver.ParseRef(s)
		wantError(t, s, err, driver.ErrInvalid, "is not a message reference")
		if !got.IsZero() || len(err.Error()) > 400 {
			t.Errorf("ParseRef(%.80q) = %v beside its error", s, got)
		}
	}
}

package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// KeyFunc says by what a message is limited. It must be quick. Messages for which it returns the same share a limit,
// also those for which it returns nothing.
type KeyFunc func(m *ferry.Message) string

// ByKey limits by the message's key.
func ByKey(m *ferry.Message) string { return m.Key }

// ByTopic limits by topic.
func ByTopic(m *ferry.Message) string { return m.Topic }

// ByHeader limits by the value of a header.
func ByHeader(name string) KeyFunc {
	return func(m *ferry.Message) string { return m.Headers[name] }
}

// Constant makes all messages share one limit: a cap on the throughput of a topic, or to a downstream.
func Constant(key string) KeyFunc { return func(*ferry.Message) string { return key } }

const templateHint = "use {key}, {topic}, {id} and {header.NAME} in other text"

// Template returns a KeyFunc for a text with {key}, {topic}, {id} and {header.NAME} in it.
func Template(text string) (KeyFunc, error) {
	bad := func(format string, args ...any) error {
		return driver.NewError(driver.ErrInvalid,
			fmt.Sprintf("key template %.80q: ", text)+fmt.Sprintf(format, args...), templateHint, nil)
	}
	var parts []KeyFunc
	for rest := text; rest != ""; {
		before, behind, opens := strings.Cut(rest, "{")
		if strings.Contains(before, "}") {
			return nil, bad("a } has no {")
		}
		if before != "" {
			parts = append(parts, Constant(before))
		}
		if !opens {
			break
		}
		name, after, closes := strings.Cut(behind, "}")
		if !closes {
			return nil, bad("a { has no }")
		}
		part, ok := placeholder(name)
		if !ok {
			return nil, bad("{%.40s} does not exist", name)
		}
		parts = append(parts, part)
		rest = after
	}
	switch len(parts) {
	case 0:
		return nil, bad("it is empty")
	case 1:
		return parts[0], nil
	}
	return func(m *ferry.Message) string {
		var b strings.Builder
		for _, part := range parts {
			b.WriteString(part(m))
		}
		return b.String()
	}, nil
}

func placeholder(name string) (KeyFunc, bool) {
	if header, ok := strings.CutPrefix(name, "header."); ok {
		return ByHeader(header), header != ""
	}
	switch name {
	case "key":
		return ByKey, true
	case "topic":
		return ByTopic, true
	case "id":
		return func(m *ferry.Message) string { return m.ID }, true
	}
	return nil, false
}

// chooseKey returns the function of an option that may be a function or a template.
func chooseKey(what string, f KeyFunc, template string) (KeyFunc, error) {
	switch {
	case f != nil && template != "":
		return nil, driver.NewError(driver.ErrInvalid, what+" has both a key function and a template", "set one of them", nil)
	case template != "":
		return Template(template)
	case f != nil:
		return f, nil
	}
	return ByKey, nil
}

// bounded keeps hostile keys out of stores and lists: of one that is long, or no text, it takes a hash.
func bounded(key string) string {
	const longest = 512
	if len(key) <= longest && utf8.ValidString(key) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}

package auth

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

const hidden = "***"

// Secret is a text that is never printed: not by fmt, not in JSON or YAML, not in a log. Only Reveal tells it.
// a pointer: fmt cannot call methods of fields that are not exported, and prints an address then
type Secret struct{ text *string }

// NewSecret returns the secret of a text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text. What it is given to must not print it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether there is no text.
func (s Secret) Empty() bool { return s.Reveal() == "" }

// Equal compares in a time that does not tell how much of the text is the same.
func (s Secret) Equal(text string) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(text)) == 1
}

// String hides the text.
func (s Secret) String() string { return hidden }

// Format hides the text from every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// MarshalText hides the text in JSON and in YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the text from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

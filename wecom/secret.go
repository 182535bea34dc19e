package wecom

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a text that is never printed: neither by fmt, nor by a logger, nor as JSON or YAML.
type Secret string

// hidden is what is shown of a secret.
const hidden = "***"

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format hides the secret from every verb of fmt, also from those that are not for texts: of them fmt would show it.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText hides the secret from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes the secret as it is.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = Secret(text)
	return nil
}

// LogValue hides the secret from loggers.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

package auth

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestSecretIsNeverPrinted prints a secret, and things that hold one, in every way there is.
func TestSecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	const canary = "Canary7"
	s := NewSecret(canary)
	type open struct{ S Secret }
	type closed struct{ s Secret }
	var out bytes.Buffer
	for _, v := range []any{s, &s, open{s}, &open{s}, closed{s}, &closed{s}, []Secret{s}, map[string]Secret{"a": s}} {
		for _, verb := range "vsqxXdTpbot" {
			for _, flag := range []string{"", "+", "#"} {
				_, _ = fmt.Fprintf(&out, "%"+flag+string(verb)+"\n", v)
			}
		}
		text, _ := json.Marshal(v)
		out.Write(text)
		text, _ = xml.Marshal(v)
		out.Write(text)
		for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(h).Info("it", "v", v)
		}
		_, _ = fmt.Fprintln(&out, v, errors.Join(fmt.Errorf("%v", v)))
	}
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary)} {
		if strings.Contains(out.String(), form) {
			t.Errorf("the secret is printed as %s", form)
		}
	}
	if s.Reveal() != canary || !s.Equal(canary) || s.Equal("canary7") || s.Empty() || !(Secret{}).Empty() ||
		(Secret{}).Reveal() != "" {
		t.Error("the secret is not what it was made of")
	}
}

package wecom_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/wecom"
)

// The example of the vendor's documentation.
const (
	officialReceiver = "wx5823bf96d3bd56c7"
	officialTime     = "1409659589"
	officialNonce    = "263014780"
	officialSign     = "5c45ff5e21c57e6ad56bac8758b79b1d9ac89fd3"
	officialEcho     = "P9nAzCzyDtyTWESHep1vC5X9xho/qYX3Zpb4yKa9SKld1DsH3Iyt3tP3zNdtp+4RPcs8TgAE7OaBO+FZXvnaqQ=="
	officialText     = "1616140317555161061"
)

var officialPair = wecom.KeyPair{Token: "QDG6eK", AESKey: "jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C"}

// otherPair has keys of its own.
var otherPair = wecom.KeyPair{Token: "other", AESKey: wecom.Secret(strings.Repeat("A", 43))}

func keys(t testing.TB, receiver string, pairs ...wecom.KeyPair) *wecom.Keys {
	t.Helper()
	k, err := wecom.NewKeys(receiver, pairs...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestOfficialExample(t *testing.T) {
	t.Parallel()
	for _, pairs := range [][]wecom.KeyPair{{officialPair}, {otherPair, officialPair}} {
		text, err := keys(t, officialReceiver, pairs...).Open(officialSign, officialTime, officialNonce, officialEcho)
		if err != nil || string(text) != officialText {
			t.Errorf("%d pairs: %q, %v", len(pairs), text, err)
		}
	}
}

func TestSealedIsOpened(t *testing.T) {
	t.Parallel()
	k := keys(t, "corp", officialPair)
	for size := range 70 { // over two blocks of padding
		text := strings.Repeat("界", size)
		signature, encrypted := k.Seal([]byte(text), "1", "2")
		got, err := k.Open(signature, "1", "2", encrypted)
		if err != nil || string(got) != text {
			t.Fatalf("%d: %q, %v", size, got, err)
		}
	}
}

// What was changed on the way, or is not for us, is refused.
func TestForgedCallbacks(t *testing.T) {
	t.Parallel()
	k := keys(t, "corp", officialPair)
	signature, encrypted := k.Seal([]byte("text"), "1", "2")
	foreign, sealed := keys(t, "another", officialPair).Seal([]byte("text"), "1", "2")
	other, otherwise := keys(t, "corp", otherPair).Seal([]byte("text"), "1", "2")
	for name, call := range map[string][4]string{
		"signature":        {strings.Repeat("0", 40), "1", "2", encrypted},
		"no signature":     {"", "1", "2", encrypted},
		"longer signature": {signature + "0", "1", "2", encrypted},
		"time":             {signature, "2", "2", encrypted},
		"nonce":            {signature, "1", "3", encrypted},
		"text":             {signature, "1", "2", encrypted + "="},
		"receiver":         {foreign, "1", "2", sealed},
		"unknown pair":     {other, "1", "2", otherwise},
	} {
		if _, err := k.Open(call[0], call[1], call[2], call[3]); !errors.Is(err, ferry.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzOpen opens whatever has the right signature: nothing may panic, and only what was sealed comes out.
//
// Lessons: L42
func FuzzOpen(f *testing.F) {
	_, encrypted := keys(f, "corp", officialPair).Seal([]byte("text"), "1", "2")
	for _, seed := range []string{"", "=", "AAAA", officialEcho, encrypted, encrypted[:44], strings.Repeat("A", 64)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, encrypted string) {
		k := keys(t, "corp", officialPair)
		_, err := k.Open(wecom.Sign(officialPair, "1", "2", encrypted), "1", "2", encrypted)
		if err != nil && !errors.Is(err, ferry.ErrInvalid) && !errors.Is(err, ferry.ErrRefused) {
			t.Errorf("%q: %v", encrypted, err)
		}
	})
}

func TestWrongKeys(t *testing.T) {
	t.Parallel()
	for name, pairs := range map[string][]wecom.KeyPair{
		"none":     nil,
		"no token": {{AESKey: officialPair.AESKey}},
		"short":    {{Token: "t", AESKey: officialPair.AESKey[1:]}},
		"letters":  {{Token: "t", AESKey: "!" + officialPair.AESKey[1:]}},
	} {
		_, err := wecom.NewKeys("corp", pairs...)
		if !errors.Is(err, ferry.ErrInvalid) || strings.Contains(err.Error(), "mYm7qr5") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := wecom.NewKeys("", officialPair); !errors.Is(err, ferry.ErrInvalid) {
		t.Errorf("no receiver: %v", err)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	encoded, err := json.Marshal(officialPair)
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("keys", "pair", officialPair, "token", officialPair.Token)
	printed := fmt.Sprintf("%v %+v %#v %s", officialPair, officialPair, officialPair, officialPair.Token)
	for _, text := range []string{string(encoded), logged.String(), printed} {
		if strings.Contains(text, "QDG6eK") || strings.Contains(text, "jWmYm7") {
			t.Error(text)
		}
	}
	var s wecom.Secret
	if err := json.Unmarshal([]byte(`"a"`), &s); err != nil || s != "a" {
		t.Errorf("%q, %v", string(s), err)
	}
}

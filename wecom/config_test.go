package wecom_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/wecom"
)

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[strings.TrimPrefix(name, "FERRY_WECOM_")]
		return value, ok
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("of a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := wecom.FromEnvironment(environment(map[string]string{"CORP": "ww1", "SECRET_FILE": file, "TOKEN": "t",
		"AES_KEY": "k", "OLD_TOKEN": "ot", "OLD_AES_KEY": "ok",
		"ACCOUNTS": "kf1,kf2", "POLL": "90s", "ALLOW_PRIVATE": "10.0.0.0/8", "TOKEN_FILE": "", "VOICE_FORMAT": "silk",
		"RECOGNISE": "24h"}))
	if err != nil || c.Corp != "ww1" || c.Secret != "of a file" || len(c.Keys) != 2 || c.Keys[1].Token != "ot" ||
		len(c.Accounts) != 2 || len(c.AllowPrivate) != 1 || c.Poll != 90*time.Second || c.VoiceFormat != wecom.VoiceSilk ||
		c.Recognise != 24*time.Hour {
		t.Errorf("%+v, %v", c, err)
	}
	if text := fmt.Sprintf("%+v", c); strings.Contains(text, "of a file") {
		t.Error(text)
	}
	for name, values := range map[string]map[string]string{
		"both":        {"SECRET": "a", "SECRET_FILE": file},
		"no file":     {"SECRET_FILE": file + "x"},
		"no network":  {"ALLOW_PRIVATE": "here"},
		"no duration": {"POLL": "soon"},
	} {
		if _, err := wecom.FromEnvironment(environment(values)); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := func() wecom.Config { return wecom.Config{Corp: "ww1", Secret: "secret"} }
	c, err := wecom.CheckConfig(good())
	if err != nil || c.Topic != wecom.Topic || c.PullTopic != wecom.PullTopic || c.Vendor != wecom.Vendor ||
		c.Poll != time.Minute || c.Recognise != wecom.Recognised {
		t.Errorf("%+v, %v", c, err)
	}
	for name, change := range map[string]func(c *wecom.Config){
		"no corp":         func(c *wecom.Config) { c.Corp = "" },
		"no secret":       func(c *wecom.Config) { c.Secret = "" },
		"poll":            func(c *wecom.Config) { c.Poll = time.Second },
		"topic":           func(c *wecom.Config) { c.Topic = "a b" },
		"one topic":       func(c *wecom.Config) { c.Topic = c.PullTopic },
		"reserved topic":  func(c *wecom.Config) { c.PullTopic = "ferry.x" },
		"account":         func(c *wecom.Config) { c.Accounts = []string{"a b"} },
		"recognise":       func(c *wecom.Config) { c.Recognise = time.Second },
		"recognise long":  func(c *wecom.Config) { c.Recognise = 8 * 24 * time.Hour },
		"voice":           func(c *wecom.Config) { c.VoiceFormat = "mp3" },
		"no such group":   func(c *wecom.Config) { c.Users = map[string][]string{"friends": {"ann"}} },
		"vendor's scheme": func(c *wecom.Config) { c.Vendor = "ftp://x" },
	} {
		c := good()
		c.PullTopic = "pulls"
		change(&c)
		if _, err := wecom.New(newBroker(t), c, wecom.Options{}); !errors.Is(err, ferry.ErrInvalid) ||
			strings.Contains(err.Error(), "secret\"") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := wecom.New(nil, good(), wecom.Options{}); !errors.Is(err, ferry.ErrInvalid) {
		t.Error(err)
	}
}

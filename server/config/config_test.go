package config

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/notify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const whole = `broker: redis://localhost:6379/0
listen: 0.0.0.0:7070
url: https://ferry.example.com
hosts: [ferry.internal]
name: front-1
store: redis://localhost:6379/1
environment: production
masks: [{topics: [mail], headers: [authorization], fields: [password]}]
drain: 5s
stop_timeout: 20s
tls: {certificate: cert.pem, key: key.pem}
sessions: {idle: 1h, max: 12h}
limits: {body: 4MiB, connections: 100, header: 2s, read: 10s, write: 20s, rate: 50}
log: {level: warn, format: json}
oidc:
  issuer: https://accounts.example.com
  client_id: ferry
  scopes: [email]
  name_claim: upn
  groups_claim: roles
  groups:
    ops: [{role: operator, topics: ["orders.*"]}]
wecom:
  corp: ww1
  accounts: [kf1]
  poll: 2m
  voice_format: silk
  recognise: 24h
  allow_private: [10.0.0.0/8]
  users: {vip: [ann]}
notify:
  topic: notices
  concurrency: 4
  timeout: 5s
  keep: 2h
  templates: {full: {title: "{host} is full", body: "{left:.1%} is left", format: text}}
  channels:
    email: {kind: email, host: smtp.example.com, username: ops, from: "Ops <ops@example.com>"}
    chat: {kind: feishu, robots: {ops: {keyword: Ferry}}, allow_private: [10.0.0.0/8]}
alerts:
  builtin: true
  every: 5s
  group: {window: 1m, count: 20}
  heartbeat: {every: 30s, targets: [{channel: email, to: dead-man@example.com}]}
  channels:
    feishu: [{channel: chat, to: ops, fallbacks: [{channel: email, to: ops@example.com}]}]
  silences: [{rule: "queue*", subject: "test/*", until: 2030-01-01T00:00:00Z, comment: tests}]
  rules:
    - {name: orders wait, when: queue_depth > threshold, threshold: 500, for: 60s, cooldown: 10m, channels: [feishu]}
`

func TestWholeFile(t *testing.T) {
	t.Parallel()
	f, err := Parse("ferry.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	o := f.Options(auth.NewSecret("x"))
	if o.Address != "0.0.0.0:7070" || o.URL != "https://ferry.example.com" || o.Hosts[0] != "ferry.internal" ||
		o.Name != "front-1" ||
		o.Drain != 5*time.Second || o.StopTimeout != 20*time.Second || o.Certificate.Key != "key.pem" ||
		o.Sessions.Max != 12*time.Hour {
		t.Errorf("%+v", o)
	}
	if l := o.Limits; l.Body != 4<<20 || l.Connections != 100 || l.Header != 2*time.Second || l.Rate != 50 ||
		l.Write != 20*time.Second {
		t.Errorf("%+v", l)
	}
	if p := o.OIDC; p.Issuer == "" || p.ClientSecret.Reveal() != "x" || p.NameClaim != "upn" ||
		p.Groups["ops"][0].Topics[0] != "orders.*" ||
		p.Groups["ops"][0].Role != auth.Operator || p.GroupsClaim != "roles" {
		t.Errorf("%+v", p)
	}
	if w := f.WeCom; w.Corp != "ww1" || w.Accounts[0] != "kf1" || w.Poll != Duration(2*time.Minute) ||
		w.VoiceFormat != "silk" || w.Recognise != Duration(24*time.Hour) ||
		w.AllowPrivate[0].Bits() != 8 || w.Users["vip"][0] != "ann" {
		t.Errorf("%+v", w)
	}
	if f.Environment != "production" || f.Masks[0].Fields[0] != "password" || f.Store == "" {
		t.Errorf("%+v", f)
	}
	if f.Level() != slog.LevelWarn || f.Broker != "redis://localhost:6379/0" {
		t.Errorf("%+v", f)
	}
}

// TestDocumentedFile: what docs/server.md shows is good as it stands there.
func TestDocumentedFile(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "```yaml\n")
	text, _, ended := strings.Cut(text, "```")
	if !found || !ended {
		t.Fatal("the page shows no file")
	}
	f, err := Parse("docs/server.md", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	watches(t, f)
}

// watches fails the test unless a hub and a watch can be made of the file.
func watches(t *testing.T, f File) {
	t.Helper()
	o, err := f.Notify.Options(func(name string) (string, bool, error) { return "https://example.com/" + name, true, nil })
	if err != nil {
		t.Fatal(err)
	}
	b, err := memory.Open(t.Context(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	hub, err := notify.New(b, o)
	if err != nil {
		t.Fatal(err)
	}
	rules := f.Alerts.Options()
	rules.Hub, rules.EventsOnly = hub, true // it is not run
	if _, err := alert.New(b, rules); err != nil {
		t.Error(err)
	}
	if err := hub.Close(); err != nil {
		t.Error(err)
	}
}

func TestEmptyFile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# nothing\n", "---\n"} {
		if f, err := Parse("ferry.yaml", []byte(text)); err != nil || f.Level() != slog.LevelInfo {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestWrongFiles: each says where and what, and repeats nothing that may be a secret.
func TestWrongFiles(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]struct{ text, says string }{
		"an unknown key":      {"listen: x:1\nlisten_on: x\n", "ferry.yaml:2: unknown field"},
		"an unknown key deep": {"limits:\n  body: 1\n  bodies: 1\n", "ferry.yaml:3:"},
		"a key twice":         {"listen: a:1\nlisten: b:1\n", "ferry.yaml:2:"},
		"a key twice, deep":   {"wecom:\n  corp: a\n  corp: b\n", "ferry.yaml:3:"},
		"another type":        {"limits:\n  connections: Canary7\n", "ferry.yaml:2:"},
		"a list for a text":   {"listen: [a]\n", "ferry.yaml:1:"},
		"a bad duration":      {"drain: Canary7\n", "ferry.yaml:1:"},
		"a bad size":          {"limits:\n  body: 8 Canary7\n", "ferry.yaml:2:"},
		"a negative size":     {"limits: {body: -1}\n", "ferry.yaml:1:"},
		"no YAML":             {"a: [\n", "ferry.yaml:"},
		"tabs":                {"limits:\n\tbody: 1\n", "ferry.yaml:"},
		"a text":              {"Canary7\n", "ferry.yaml:1:"},
		"a mask":              {"masks: [{topics: ['a b']}]\n", "pattern"},
		"a password of store": {"store: redis://:Canary7@localhost\n", "FERRY_STORE_FILE"},
		"a password":          {"broker: redis://:Canary7@localhost\n", "FERRY_BROKER_FILE"},
		"no broker URL":       {"broker: '%zz'\n", "broker of the configuration"},
		"a path in the URL":   {"url: https://a/b\n", "url of the configuration"},
		"no URL":              {"url: ferry\n", "url of the configuration"},
		"a level":             {"log: {level: loud}\n", "log.level"},
		"a format":            {"log: {format: xml}\n", "log.format"},
		"a negative rate":     {"limits: {rate: -1}\n", "negative"},
		"a role":              {"oidc: {issuer: 'https://a', client_id: b, groups: {c: [{role: root}]}}\n", "root"},
		"no groups":           {"oidc: {issuer: 'https://a', client_id: b}\n", "nobody could log in"},
		"a secret":            {"oidc: {client_secret: Canary7}\n", "unknown field"},
	} {
		refused(t, name, wrong.text, wrong.says)
	}
}

// refused demands that a file is refused with these words and a hint, and without what may be a secret.
func refused(t *testing.T, name, text, says string) {
	t.Helper()
	_, err := Parse("ferry.yaml", []byte(text))
	var known *driver.Error
	if !errors.As(err, &known) || known.Hint == "" || !strings.Contains(err.Error(), says) ||
		strings.Contains(err.Error(), "Canary7") {
		t.Errorf("%s: %v", name, err)
	}
}

// TestKeysOfOthers: what people bring from the configuration of another queue is refused with where it has its place
// here.
func TestKeysOfOthers(t *testing.T) {
	t.Parallel()
	for text, hint := range map[string]string{
		"listen: a:1\nkafka:\n  environment: production\n" +
			"  topics: {main: {partitions: 12, replication_factor: 3}}\n": "replicas=3",
		"distributed_lock: {enabled: true, redis: {mode: sentinel, master_name: m}}\n": "redis+sentinel://",
		"rate_limiter:\n  default: {window_seconds: 10, max_messages: 5, " +
			"penalty_threshold: 3, block_hours: 1.0}\n": "ferry limit rule set",
		"streaming:\n  mq: {consumer: {batch-size: 10}, producer: {max-len: 10000}}\n": "ferry topic retain",
		"max_workers: 5\n":                "worker.Concurrency",
		"connection_pool_size: 20\n":      "pool=20",
		"processing_timeout: 180\n":       "worker.Timeout",
		"message_ttl: 86400\n":            "ferry.TTL",
		"retry_delays: [60, 300, 1800]\n": "RetryPolicy",
		"preset: high_performance\n":      "worker.Concurrency(20)",
	} {
		_, err := Parse("ferry.yaml", []byte(text))
		var known *driver.Error
		if !errors.As(err, &known) || !strings.Contains(known.Hint, hint) || !strings.Contains(known.Text, "unknown field") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestUnreadableFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long := filepath.Join(dir, "long")
	if err := os.WriteFile(long, []byte(strings.Repeat("#\n", maxFile)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "none"), dir, long} {
		if _, err := Read(path); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add("limits: {body: 8MiB}\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("ferry.yaml", []byte(text))
		if err != nil && !errors.Is(err, driver.ErrInvalid) {
			t.Error(err)
		}
		if err == nil {
			file.Options(auth.Secret{})
		}
	})
}

package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/notify"
)

const (
	chats = "notify: {channels: {chat: {kind: slack, robots: {ops: {}}}}}\n"
	// told are alerts that go to that channel; rules and silences come after.
	told = chats + "alerts:\n  channels: {slack: [{channel: chat, to: ops}]}\n"
)

func TestWrongChannels(t *testing.T) {
	t.Parallel()
	const channels = "notify:\n  channels:\n    a:\n"
	refused(t, "no kind", channels+"      host: x\n", "ferry.yaml:4: a channel needs a kind")
	refused(t, "another kind", channels+"      kind: Canary7\n", "ferry.yaml:4: there is no such kind")
	refused(t, "a key of another kind", channels+"      kind: slack\n      host: x\n", "ferry.yaml:5: unknown field")
	refused(t, "a secret of a robot", channels+"      kind: slack\n      robots: {b: {url: Canary7}}\n", "unknown field")
	refused(t, "half a rate", channels+"      kind: email\n      rates: [{sends: 5}]\n", "ferry.yaml:5: a rate looks like")
	refused(t, "another type", channels+"      kind: email\n      port: Canary7\n", "ferry.yaml:5:")
}

func TestWrongAlerts(t *testing.T) {
	t.Parallel()
	const rules = "alerts:\n  rules:\n    - name: a\n"
	refused(t, "a key of a rule", rules+"      if: x\n", "ferry.yaml:4: unknown field")
	refused(t, "a condition", rules+"      when: queue_dept > 1\n", "ferry.yaml:3: rule \"a\": column 1")
	refused(t, "a rule in vain", rules+"      when: error_rate > 5\n", "ferry.yaml:3: rule \"a\": it can never fire")
	refused(t, "a time", rules+"      when: ready > 1\n      for: Canary7\n", "ferry.yaml:3: a rule cannot be read")
	refused(t, "no channel", "alerts: {builtin: true}\n", "go nowhere")
	refused(t, "another channel", "alerts: {builtin: true, channels: {a: [{channel: b, to: c}]}}\n",
		"go to channel \"b\", which is not there")
	refused(t, "a rule to nobody", told+"  rules: [{name: r, when: ready > 1, channels: [b]}]\n",
		"rule \"r\" of the configuration goes to channels that are not there")
	refused(t, "a rule twice", told+"  rules: [{name: r, when: ready > 1}, {name: r, when: ready > 1}]\n",
		"two of this name")
	refused(t, "a silence", told+"  builtin: true\n  silences: [{rule: '['}]\n", "of a silence is broken")
}

// environment is a Secret that reads a map.
func environment(values map[string]string) Secret {
	return func(name string) (string, bool, error) {
		value, found := values[name]
		return value, found, nil
	}
}

func parsed(t *testing.T, text string) File {
	t.Helper()
	f, err := Parse("ferry.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestChannelsGetTheirSecrets(t *testing.T) {
	t.Parallel()
	o, err := parsed(t, whole).Notify.Options(environment(map[string]string{
		"FERRY_NOTIFY_EMAIL_PASSWORD":  "secret",
		"FERRY_NOTIFY_CHAT_OPS_URL":    "https://open.feishu.cn/open-apis/bot/v2/hook/x",
		"FERRY_NOTIFY_CHAT_OPS_SECRET": "secret",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Channels) != 2 || o.Topic != "notices" || o.Concurrency != 4 || o.Timeout != 5*time.Second ||
		o.Keep != 2*time.Hour || o.Templates["full"].Format != notify.Text {
		t.Errorf("%+v", o)
	}
}

// TestEveryKindOpens: each kind makes its channel of the keys and secrets that docs/notify.md lists.
func TestEveryKindOpens(t *testing.T) {
	t.Parallel()
	for kind, test := range map[string]struct{ keys, secrets string }{
		"email":      {"host: smtp.example.com, from: ops@example.com", ""},
		"feishu":     {"robots: {ops: {}}", "OPS_URL OPS_SECRET"},
		"dingtalk":   {"robots: {on-call: {unsigned: true}}", "ON_CALL_URL"},
		"wecomrobot": {"robots: {ops: {}}", "OPS_URL"},
		"slack":      {"robots: {ops: {}}", "OPS_URL"},
		"webhook":    {"endpoints: [audit], unsigned: true, rates: [{sends: 5, per: 1s}]", "AUDIT_URL"},
		"aliyun":     {"sign_name: Ferry, template_code: SMS_1, params: {content: '{title}'}", "KEY_ID KEY_SECRET"},
		"tencent":    {"app_id: '1', sign_name: Ferry, template_id: '2', params: ['{title}']", "KEY_ID KEY_SECRET"},
		"twilio":     {"account_sid: AC1, from: '+15005550006'", "TOKEN"},
		"gateway":    {`url: "https://sms.example.com", header: X-Key, body: '{{"to": "{to}"}}'`, "KEY"},
	} {
		f := parsed(t, "notify: {channels: {it: {kind: "+kind+", "+test.keys+"}}}\n")
		values := map[string]string{}
		for name := range strings.FieldsSeq(test.secrets) {
			values["FERRY_NOTIFY_IT_"+name] = "https://vendor.example.com/x"
		}
		if o, err := f.Notify.Options(environment(values)); err != nil || len(o.Channels) != 1 {
			t.Errorf("%s: %v", kind, err)
		}
		if test.secrets == "" {
			continue
		}
		_, err := f.Notify.Options(environment(nil))
		var known *driver.Error
		first, _, _ := strings.Cut(test.secrets, " ")
		if !errors.As(err, &known) || !strings.Contains(known.Hint, "FERRY_NOTIFY_IT_"+first+"_FILE") {
			t.Errorf("%s without its secrets: %v", kind, err)
		}
	}
	if len(channelKinds) != 10 {
		t.Errorf("%d kinds, and the test knows 10", len(channelKinds))
	}
}

func TestUnreadableSecret(t *testing.T) {
	t.Parallel()
	wrong := errors.New("its mode is wrong")
	_, err := parsed(t, chats).Notify.Options(func(string) (string, bool, error) { return "", false, wrong })
	if !errors.Is(err, wrong) {
		t.Error(err)
	}
}

func TestAlertsOfTheFile(t *testing.T) {
	t.Parallel()
	a := parsed(t, whole).Alerts
	o := a.Options()
	if !a.Watches() || len(o.Rules) != len(alert.Builtin())+1 || o.Every != 5*time.Second || o.Group.Count != 20 ||
		o.Heartbeat.Every != 30*time.Second || len(o.Heartbeat.Targets) != 1 ||
		o.Channels["feishu"][0].Fallbacks[0].To != "ops@example.com" {
		t.Errorf("%+v", o)
	}
	if s := o.Silences[0]; s.Rule != "queue*" || s.Until.Year() != 2030 || s.Comment != "tests" {
		t.Errorf("%+v", s)
	}
	last := o.Rules[len(o.Rules)-1]
	if last.Name != "orders wait" || last.For != time.Minute || last.Threshold != 500 {
		t.Errorf("%+v", last)
	}
	for _, r := range o.Rules {
		if !a.reaches(r) {
			t.Errorf("nobody is told of %s", r.Name)
		}
	}
}

package alert_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/alert"
)

func TestWrongRules(t *testing.T) {
	for want, r := range map[string]alert.Rule{
		"column 13":         {Name: "type", When: "queue_depth > \"many\""},
		"unknown name":      {Name: "unknown", When: "queue_dept > 1"},
		"can never fire":    {Name: "share", When: "error_rate > 5"},
		"never fire":        {Name: "threshold", When: "timeout_rate > threshold", Threshold: 5},
		"belongs to no":     {Name: "levels", When: "breaker_open > 0 and queue_depth > 1"},
		"it can never":      {Name: "negative", When: "queue_depth < 0"},
		"error_rate > 1.5":  {Name: "mirrored", When: "1.5 < error_rate"},
		"full == 2":         {Name: "equal", When: "full == 2"},
		"no ready is what":  {Name: "contradiction", When: "ready > 10 and waiting > 1 and ready < threshold", Threshold: 5},
		"no growth is what": {Name: "signed", When: "growth < -1 && (waiting > 1 && growth == 0)"},
		"names no figure":   {Name: "constant", When: "1 > 2"},
		"bool":              {Name: "no condition", When: "queue_depth"},
		"not usable":        {Name: "a/b", When: "queue_depth > 1"},
		"name is not":       {Name: "a\x00b", When: "queue_depth > 1"},
		"memory budget":     {Name: "huge", When: "ready in map(1..100000000, # * 1.5)"},
		"severity":          {Name: "severity", When: "queue_depth > 1", Severity: "bad"},
		"negative":          {Name: "for", When: "queue_depth > 1", For: -1},
		"pattern":           {Name: "pattern", When: "queue_depth > 1", Topics: []string{"["}},
		"unknown variable":  {Name: "text", When: "queue_depth > 1", Text: "{nothing}"},
		"has no '}'":        {Name: "brace", When: "queue_depth > 1", Text: "{queue_depth"},
		"threshold is NaN":  {Name: "nan", When: "queue_depth > threshold", Threshold: math.NaN()},
		"threshold is +Inf": {Name: "inf", When: "queue_depth > threshold", Threshold: math.Inf(1)},
		"format \"x\" in c": {Name: "format", When: "queue_depth > 1", Text: "{queue_depth:x}"},
	} {
		err := alert.Check([]alert.Rule{r})
		if !errors.Is(err, ferry.ErrInvalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(),
			"hint") {
			t.Errorf("%s: %v, not %q", r.Name, err, want)
		}
	}
	twice := []alert.Rule{{Name: "a", When: "ready > 1"}, {Name: "a", When: "ready > 1"}}
	if err := alert.Check(twice); !errors.Is(err, ferry.ErrInvalid) {
		t.Errorf("two of a name: %v", err)
	}
}

// A condition that asks for two things is refused only if they exclude each other.
func TestRulesThatCanFire(t *testing.T) {
	for _, when := range []string{"ready > 10 and ready < 12", "ready >= 5 and ready <= 5", "ready > 10 or ready < 5",
		"error_rate >= 1", "queue_depth <= 0", "0 < ready and ready > 5", "not (ready > 5 and waiting < 3)"} {
		if err := alert.Check([]alert.Rule{{Name: "a", When: when}}); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
}

// A queue can grow by less than nothing: consumers catch up.
func TestGrowthMayBeNegative(t *testing.T) {
	for _, when := range []string{"growth < 0", "growth <= -5", "growth < threshold"} {
		if err := alert.Check([]alert.Rule{{Name: "a", When: when}}); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
}

func TestBuiltin(t *testing.T) {
	if err := alert.Check(alert.Builtin()); err != nil {
		t.Fatal(err)
	}
	names := map[string]alert.Rule{}
	for _, r := range alert.Builtin() {
		names[r.Name] = r
	}
	for name, want := range map[string]struct {
		threshold float64
		severity  alert.Severity
		f         time.Duration
	}{
		"队列积压告警": {1000, alert.Warning, time.Minute}, "处理超时率告警": {0.05, alert.Critical, 2 * time.Minute},
		"Redis内存告警": {0.8, alert.Warning, 5 * time.Minute}, "死信队列告警": {100, alert.Critical, 0},
		"queue depth (critical)": {5000, alert.Critical, time.Minute}, "RebalanceFrequent": {3, alert.Page, 10 * time.Minute},
	} {
		if r := names[name]; r.Threshold != want.threshold || r.Severity != want.severity || r.For != want.f {
			t.Errorf("%s is %+v", name, r)
		}
	}
}

func TestParseRules(t *testing.T) {
	rules,
		err := alert.ParseRules([]byte("builtin: true\nrules:\n  - name: 队列积压告警\n    when: queue_depth > 7\n    for: 90s\n"))
	if err != nil {
		t.Fatal(err)
	}
	last := rules[len(rules)-1]
	if len(rules) != len(alert.Builtin()) || last.When != "queue_depth > 7" || last.For != 90*time.Second {
		t.Errorf("%d rules, the last is %+v", len(rules), last)
	}
	for text, want := range map[string]string{
		"rules:\n  - name: a\n    wen: ready > 1\n": "wen",
		"rules: 7\n": "rules",
		"rules:\n  - name: a\n    when: ready >\n": "column",
		"": "no rule",
	} {
		if _, err := alert.ParseRules([]byte(text)); !errors.Is(err, ferry.ErrInvalid) || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPrometheus(t *testing.T) {
	text, err := alert.Prometheus(alert.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Groups []struct {
			Rules []struct{ Alert, Expr, For string }
		}
	}
	if err := yaml.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Groups) != 1 || len(f.Groups[0].Rules) < 25 || f.Groups[0].Rules[0].Alert != "队列积压告警" ||
		!strings.HasSuffix(f.Groups[0].Rules[0].Expr, ") > 1000") || f.Groups[0].Rules[0].For != "60s" {
		t.Errorf("the file is %s", text)
	}
	if !strings.Contains(text, "# not for Prometheus: UserBlocked") {
		t.Error("what is left out is not said")
	}
}

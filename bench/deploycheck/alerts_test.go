package deploycheck_test

import (
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/common/model"

	"github.com/ferrymq/ferry/alert"
)

// TestBuiltinAlerts: the built-in rules of package alert, written for Prometheus, are a file that Prometheus reads, and
// name metrics that exist.
func TestBuiltinAlerts(t *testing.T) {
	known := demo(t)
	text, err := alert.Prometheus(alert.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	var file rules
	if err := yaml.UnmarshalWithOptions([]byte(text), &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) < 30 {
		t.Fatalf("%d groups: %s", len(file.Groups), text)
	}
	names := map[string]bool{}
	for _, r := range file.Groups[0].Rules {
		if names[r.Alert] || r.Alert == "" || r.Labels["severity"] == "" {
			t.Errorf("rule %q is there twice, or has no name or severity", r.Alert)
		}
		names[r.Alert] = true
		known.check(t, r.Alert, r.Expr, map[string]bool{})
		if _, err := model.ParseDuration(r.For); r.For != "" && err != nil {
			t.Errorf("alert %s: %v", r.Alert, err)
		}
	}
}

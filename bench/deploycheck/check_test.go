package deploycheck_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/common/model"
)

// TestDashboards loads every dashboard: it asks for a data source, its ids are its own, and its queries name metrics
// and labels that exist.
func TestDashboards(t *testing.T) {
	known := demo(t)
	files, err := filepath.Glob("../../deploy/grafana/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	used := map[string]bool{}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			d := read(t, file)
			if d.UID == "" || d.Title == "" || len(d.Inputs) != 1 || d.Inputs[0].Name != "DS_PROMETHEUS" {
				t.Errorf("uid %q, title %q, inputs %v", d.UID, d.Title, d.Inputs)
			}
			seen := map[int]bool{}
			for _, p := range d.Panels {
				if seen[p.ID] || p.Title == "" || len(p.Targets) == 0 || p.Datasource.UID != "${DS_PROMETHEUS}" {
					t.Errorf("panel %d, %q: its id is another's, or it has no title, no query or another data source", p.ID, p.Title)
				}
				seen[p.ID] = true
				for _, q := range p.Targets {
					known.check(t, p.Title, resolved(q.Expr), used)
				}
			}
			for _, v := range d.Templating.List {
				known.check(t, "variable "+v.Name, labelValues(t, v.Query.Query), used)
			}
		})
	}
	for name := range known {
		if strings.HasPrefix(name, "ferry_") && !used[base(name)] && !notShown[base(name)] {
			t.Errorf("no dashboard shows %s", name)
		}
	}
}

// notShown are metrics that people look for when they need them.
var notShown = map[string]bool{
	"ferry_build_info": true, "ferry_folded_names": true, "ferry_failures_total": true,
	"ferry_last_failure_timestamp_seconds": true,
	"ferry_processes":                      true, "ferry_messages_published_total": true,
	"ferry_emergency_writes_total":    true,
	"ferry_partition_processed_total": true,
	"ferry_spool_failures_total":      true, "ferry_spool_last_timestamp_seconds": true,
}

// TestRules checks alerts and recorded rules: their fields, their expressions, and the templates of their texts.
func TestRules(t *testing.T) {
	known := demo(t)
	text, err := os.ReadFile("../../deploy/prometheus/ferry-rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file rules
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	for _, r := range all {
		if r.Record != "" {
			known[r.Record] = nil
		}
	}
	names := map[string]bool{}
	for _, r := range all {
		name := r.Alert + r.Record
		if names[name] || (r.Alert == "") == (r.Record == "") {
			t.Errorf("rule %q is there twice, or is not either an alert or recorded", name)
		}
		names[name] = true
		known.check(t, name, r.Expr, map[string]bool{})
		if r.Alert != "" {
			r.checkAlert(t)
		}
	}
}

type rules struct {
	Groups []struct {
		Name, Interval string
		Rules          []rule
	}
}

type rule struct {
	Alert, Record, Expr, For string
	Labels, Annotations      map[string]string
}

func (r rule) checkAlert(t *testing.T) {
	t.Helper()
	if r.For != "" {
		if _, err := model.ParseDuration(r.For); err != nil {
			t.Errorf("alert %s: %v", r.Alert, err)
		}
	}
	if r.Annotations["summary"] == "" || !slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) {
		t.Errorf("alert %s has no summary, or severity %q", r.Alert, r.Labels["severity"])
	}
	same := func(v any) any { return v }
	functions := template.FuncMap{"humanize": same, "humanizePercentage": same, "humanizeDuration": same}
	const variables = "{{ $labels := .Labels }}{{ $value := .Value }}"
	for _, text := range r.Annotations {
		if _, err := template.New(r.Alert).Funcs(functions).Parse(variables + text); err != nil {
			t.Errorf("alert %s: %v", r.Alert, err)
		}
	}
}

type dashboard struct {
	UID, Title string
	Inputs     []struct{ Name string } `json:"__inputs"`
	Panels     []struct {
		ID         int
		Title      string
		Datasource struct{ UID string }
		Targets    []struct{ Expr string }
	}
	Templating struct {
		List []struct {
			Name  string
			Query struct{ Query string }
		}
	}
}

func read(t *testing.T, file string) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// resolved is an expression as Grafana sends it.
func resolved(expr string) string {
	return strings.NewReplacer("$__rate_interval", "1m", "$broker", "x", "$topic", "x", "$group", "x", "$instance",
		"x").Replace(expr)
}

var ofVariable = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// labelValues is the expression whose labels a variable of a dashboard lists.
func labelValues(t *testing.T, query string) string {
	t.Helper()
	parts := ofVariable.FindStringSubmatch(query)
	if parts == nil {
		t.Fatalf("%q is not label_values(metric, label)", query)
	}
	return "count by (" + parts[2] + ") (" + resolved(parts[1]) + ")"
}

// base is the metric of a series of a histogram or a summary.
func base(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

package alert

import (
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// rulesFile is what a file of rules holds.
type rulesFile struct {
	// Builtin takes the built-in rules too; one of the same name replaces them.
	Builtin bool   `yaml:"builtin"`
	Rules   []Rule `yaml:"rules"`
}

// ParseRules reads rules from YAML: "builtin: true" and a list "rules". What is unknown or wrong is refused, with its
// line.
func ParseRules(data []byte) ([]Rule, error) {
	var f rulesFile
	if err := yaml.UnmarshalWithOptions(data, &f, yaml.Strict()); err != nil {
		return nil, driver.NewError(ferry.ErrInvalid, "the rules cannot be read: "+yaml.FormatError(err, false, true),
			"see docs/alerts.md", nil)
	}
	rules := f.Rules
	if f.Builtin {
		rules = Merge(Builtin(), f.Rules)
	}
	if len(rules) == 0 {
		return nil, driver.NewError(ferry.ErrInvalid, "there is no rule", "list some under rules, or write builtin: true",
			nil)
	}
	return rules, Check(rules)
}

// Merge puts rules over those of the same name, and after the others.
func Merge(base, over []Rule) []Rule {
	var rules []Rule
	for _, b := range base {
		replaced := false
		for _, o := range over {
			replaced = replaced || o.Name == b.Name
		}
		if !replaced {
			rules = append(rules, b)
		}
	}
	return append(rules, over...)
}

// Prometheus is the file of alerting rules for Prometheus that says the same. Rules without PromQL are named in
// comments.
func Prometheus(rules []Rule) (string, error) {
	compiled, err := compile(rules)
	if err != nil {
		return "", err
	}
	var out, left strings.Builder
	out.WriteString("# Made by ferry alert prometheus. The same rules as package alert evaluates.\n" +
		"groups:\n  - name: ferry\n    rules:\n")
	for _, r := range compiled {
		if r.PromQL == "" || r.Disabled {
			fmt.Fprintf(&left, "# not for Prometheus: %s\n", r.Name)
			continue
		}
		condition := r.PromQL
		if r.operator != "" {
			condition = fmt.Sprintf("(%s) %s %v", r.PromQL, r.operator, r.Threshold)
		}
		fmt.Fprintf(&out, "      - alert: %q\n        expr: %q\n", r.Name, condition)
		if r.For > 0 {
			fmt.Fprintf(&out, "        for: %ds\n", int(r.For/time.Second))
		}
		fmt.Fprintf(&out, "        labels: {severity: %q}\n", r.Severity)
		if r.Action != "" {
			fmt.Fprintf(&out, "        annotations: {action: %q}\n", r.Action)
		}
	}
	return out.String() + left.String(), nil
}

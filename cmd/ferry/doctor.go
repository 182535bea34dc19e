package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/driver"
)

const doctorLong = `Looks at the broker itself: version, settings, rights, and what an acknowledged publish really
survives. Each finding is ok, a warning (it works, but promises less than you may think), an
error (it will lose or refuse messages), or unknown (it could not be found out).

Exit code 1 when there is an error.`

func newDoctor(p process) *cobra.Command {
	c := &cobra.Command{Use: "doctor", Short: "Check that the broker is set up well", Long: doctorLong, Example: "  ferry doctor\n  ferry doctor --output json | jq '.[] | select(.severity != \"ok\")'"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.with(c.Context(), func(s session) error { return s.diagnose(c.Context()) })
	}
	return c
}

// findingView is the JSON form of a finding.
type findingView struct {
	Severity driver.Severity `json:"severity"`
	Subject  string          `json:"subject"`
	Text     string          `json:"text"`
	Hint     string          `json:"hint,omitempty"`
}

func (s session) diagnose(ctx context.Context) error {
	findings, err := s.driver.Diagnose(ctx)
	if err != nil {
		return err
	}
	caps := s.driver.Capabilities()
	all := []findingView{{Severity: driver.SeverityOK, Subject: "broker", Text: fmt.Sprintf("%s, durability of a publish: %s", brokerName(s.broker), caps.Durability)}}
	var wrong []string
	for _, f := range findings {
		all = append(all, findingView(f))
		if f.Severity == driver.SeverityError {
			wrong = append(wrong, f.Subject)
		}
	}
	if err := s.showFindings(all); err != nil {
		return err
	}
	if len(wrong) > 0 {
		return failure(fmt.Sprintf("%d errors: %s", len(wrong), strings.Join(wrong, ", ")), "each finding above says what to do about it")
	}
	return nil
}

func (s session) showFindings(all []findingView) error {
	if s.format != formatTable {
		return list(s.remote, nil, all, "")
	}
	t := newTerminal(s.process)
	for _, f := range all {
		t.printf("%s  %s  %s\n", severityWord(t, f.Severity), fit(f.Subject, 16), printable(f.Text))
		if f.Hint != "" {
			t.printf("%s  %s  %s\n", fit("", 9), fit("", 16), t.dim("→ "+printable(f.Hint)))
		}
	}
	return nil
}

// severityWord returns a symbol and a word, so that nothing depends on colour.
func severityWord(t *terminal, s driver.Severity) string {
	symbols := map[driver.Severity]struct{ symbol, color string }{
		driver.SeverityOK: {"✓", "32"}, driver.SeverityWarning: {"!", "33"}, driver.SeverityError: {"✗", "31"},
	}
	look, ok := symbols[s]
	if !ok {
		look.symbol, look.color = "?", "2"
	}
	return t.paint(look.color, fit(look.symbol+" "+string(s), 9))
}

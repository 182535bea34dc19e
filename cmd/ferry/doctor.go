package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/open"
)

const doctorLong = `Looks at the broker itself: version, settings, rights, and what an acknowledged publish really
survives. Each finding is ok, a warning (it works, but promises less than you may think), an
error (it will lose or refuse messages), or unknown (it could not be found out).

Of a disk:// broker, which no other process may be using, it also reads every record with its
checksum, bodies included, and adds up where all messages are. A damaged one is left untouched.

Exit code 1 when there is an error.`

func newDoctor(p process) *cobra.Command {
	c := &cobra.Command{Use: "doctor", Short: "Check that the broker is set up well", Long: doctorLong,
		Example: "  ferry doctor\n  ferry doctor --output json | jq '.[] | select(.severity != \"ok\")'"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.doctor(c.Context())
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

// doctor looks at the files of a broker that has some, and then at the broker. Damaged files are not opened.
func (r *remote) doctor(ctx context.Context) error {
	if err := oneOf("output", r.format, formatTable, formatJSON, formatNDJSON); err != nil {
		return err
	}
	files, err := r.checkFiles(ctx)
	if err != nil {
		return err
	}
	if n, _ := errorsAmong(files); n > 0 {
		return r.conclude(files)
	}
	return r.with(ctx, func(s session) error {
		findings, err := s.driver.Diagnose(ctx)
		if err != nil {
			return err
		}
		caps := s.driver.Capabilities()
		broker := driver.Finding{Severity: driver.SeverityOK, Subject: "broker",
			Text: fmt.Sprintf("%s, durability of a publish: %s", brokerName(s.broker), caps.Durability)}
		return r.conclude(slices.Concat([]driver.Finding{broker}, open.Diagnose(withScheme(r.url)), files, findings))
	})
}

// checkFiles reads every record of a broker in a directory. Of one that does not exist yet there is nothing to read.
func (r *remote) checkFiles(ctx context.Context) ([]driver.Finding, error) {
	url := withScheme(r.url)
	if scheme, _, _ := strings.Cut(url, ":"); !strings.EqualFold(scheme, "disk") {
		return nil, nil
	}
	o, err := open.Disk(url)
	if err != nil {
		return nil, err
	}
	findings, err := disk.Check(ctx, o)
	if errors.Is(err, driver.ErrNotFound) {
		return nil, nil
	}
	return findings, err
}

// errorsAmong counts the errors, and returns what they are about.
func errorsAmong(findings []driver.Finding) (n int, subjects []string) {
	for _, f := range findings {
		if f.Severity != driver.SeverityError {
			continue
		}
		if n++; !slices.Contains(subjects, f.Subject) {
			subjects = append(subjects, f.Subject)
		}
	}
	return n, subjects
}

// conclude shows what was found, and fails if there is an error among it.
func (r *remote) conclude(findings []driver.Finding) error {
	all := make([]findingView, len(findings))
	for i, f := range findings {
		all[i] = findingView(f)
	}
	if err := r.showFindings(all); err != nil {
		return err
	}
	if n, subjects := errorsAmong(findings); n > 0 {
		return failure(fmt.Sprintf("%d errors: %s", n, strings.Join(subjects, ", ")),
			"each finding above says what to do about it")
	}
	return nil
}

func (r *remote) showFindings(all []findingView) error {
	if r.format != formatTable {
		return list(r, nil, all, "")
	}
	t := newTerminal(r.process)
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

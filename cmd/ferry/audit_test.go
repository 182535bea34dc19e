package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

func TestAudit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.has(d.ok("audit"), "No topics, no problems.")
	d.ok("pub", "orders", "a", "b")
	d.ok("pub", "mails", "c", "--delay", "1h")
	d.ok("sub", "orders", "--ack", "--count", "1")
	d.has(d.ok("audit"), "mails  1 messages checked, 0 problems, 0 fixed\n  published 1 = 0 fanned + 1 delayed + 0 held "+
		"+ 0 expired + 0 cancelled\n",
		"  group default received 2 = 1 acked + 0 dropped + 0 expired + 0 cancelled + 1 ready + 0 in flight + 0 waiting + "+
			"0 dead\n")
	d.hasNot(d.ok("audit", "orders"), "mails")
}

// sick finds problems, and repairs one of two.
type sick struct {
	driver.Driver
	findings []driver.Finding
}

func (s sick) Audit(ctx context.Context, topic string, fix bool) (driver.AuditReport, error) {
	r, err := s.Driver.Audit(ctx, topic, fix)
	r.Problems = []driver.Problem{
		{Kind: "orphan", Group: "default", ID: "evil\x1b[31m", Text: "is in no state", Fixed: fix},
		{Kind: "count", Text: "2 are ready, but 3 are counted"},
	}
	return r, err
}

func (s sick) Diagnose(context.Context) ([]driver.Finding, error) { return s.findings, nil }

func TestAuditTellsProblems(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.driver = sick{Driver: d.memory}
	d.ok("pub", "orders", "a")
	r := d.fails(exitFailure, "error: 2 problems found", "audit")
	d.has(r.out, "2 problems, 0 fixed", `  ✗ orphan: group default: message evil\x1b[31m is in no state`,
		"  ✗ count: 2 are ready, but 3 are counted")
	d.has(r.err, "hint: repair them with: ferry audit --fix")
	r = d.fails(exitFailure, "error: 1 problems remain", "audit", "orders", "--fix")
	d.has(r.out, "2 problems, 1 fixed", "  ✓ fixed: orphan: ")
	var v []auditView
	if err := json.Unmarshal([]byte(d.run("audit", "--output", "json").out), &v); err != nil || v[0].Remaining != 2 ||
		len(v[0].Problems) != 2 || len(v[0].Equations) != 2 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.has(d.ok("doctor"), "✓ ok       broker            memory://, durability of a publish: memory\n",
		"! warning  durability        messages live in this process and end with it\n", "→ use another broker")
	d.driver = sick{Driver: d.memory, findings: []driver.Finding{
		{Severity: driver.SeverityError, Subject: "eviction", Text: "maxmemory-policy is allkeys-lru\x1b[2J",
			Hint: "set it to noeviction"},
		{Severity: driver.SeverityUnknown, Subject: "persistence", Text: "CONFIG is not allowed", Hint: "allow it"},
	}}
	r := d.fails(exitFailure, "error: 1 errors: eviction", "doctor")
	d.has(r.out, "✗ error    eviction          maxmemory-policy is allkeys-lru\\x1b[2J\n", "? unknown  persistence ")
	r = d.run("doctor", "--output", "json")
	var v []findingView
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || r.code != exitFailure || len(v) != 3 ||
		v[1].Severity != driver.SeverityError {
		t.Errorf("%+v, %v, exit code %d", v, err, r.code)
	}
}

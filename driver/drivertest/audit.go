package drivertest

import (
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// auditOfASoundTopic: an audit looks at everything, finds nothing, and repairs nothing.
func auditOfASoundTopic(t *T) {
	s := t.consumer()
	t.put("dead", "waiting", "inflight", "acked")
	ds := s.expect("dead", "waiting", "inflight", "acked")
	s.bury(ds[0])
	s.retry(ds[1], time.Hour)
	s.ack(ds[3])
	t.publish(t.msg("ready"), t.msg("keyed", key("k")), t.msg("delayed", delay(time.Hour)),
		t.msg("held", delay(driver.Hold)))
	before := t.stats(topic)
	for _, fix := range []bool{false, true} {
		report, err := t.Audit(t.ctx(), topic, fix)
		t.ok(err, "Audit")
		t.equal(report.Problems, []driver.Problem(nil), "problems of a sound topic")
		t.equal(report.Topic, topic, "topic of the report")
		t.equal(report.Checked, 7, "messages looked at")
		if t.Caps.Counts == driver.CountsExact {
			t.equal(report.Stats.Groups[0].Ready, before.Groups[0].Ready, "ready messages in the report")
		}
	}
	t.counts(2, 1, 1, 1)
	s.ack(ds[2])
	t.equal(sorted(bodies(s.take(2))), []string{"keyed", "ready"}, "deliveries after the audit")
}

func auditOfAnUnknownTopic(t *T) {
	_, err := t.Audit(t.ctx(), "nowhere", false)
	t.wantErr(err, driver.ErrNotFound, "Audit of an unknown topic")
	t.hinted(err)
}

func diagnoseSaysWhatItFound(t *T) {
	findings, err := t.Diagnose(t.ctx())
	t.ok(err, "Diagnose")
	known := []driver.Severity{driver.SeverityOK, driver.SeverityWarning, driver.SeverityError, driver.SeverityUnknown}
	for _, f := range findings {
		if !slices.Contains(known, f.Severity) || f.Subject == "" || f.Text == "" {
			t.Errorf("finding %+v lacks its severity, subject or text", f)
		}
		if (f.Hint == "") != (f.Severity == driver.SeverityOK) {
			t.Errorf("finding %+v: a hint says what to do about what is not ok", f)
		}
	}
	if len(findings) == 0 {
		t.Error("Diagnose looked at nothing: it should at least say what an acknowledged publish survives")
	}
}

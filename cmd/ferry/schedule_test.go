package main

import (
	"encoding/json"
	"testing"
)

// shown returns a schedule as ferry schedule show tells it.
func (d *desk) shown(name string) (v scheduleView) {
	d.Helper()
	if err := json.Unmarshal([]byte(d.ok("schedule", "show", name, "--output", "json")), &v); err != nil {
		d.Fatal(err)
	}
	return v
}

// A schedule that is put with another spec keeps what is not given, and says so.
func TestSchedulePutKeepsWhatIsNotGiven(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("schedule", "put", "nightly", "0 3 * * *", "reports", `{"kind":"nightly"}`, "--zone", "Europe/Berlin", "--delay",
		"5m", "--key", "k", "--header", "a=1", "--paused",
		"--dedup", "x", "--dedup-window", "1h", "--unique", "u", "--unique-for", "2h", "--missed", "skip", "--until",
		"2090-01-01T00:00:00Z")
	r := d.run("schedule", "put", "nightly", "0 4 * * *", "reports")
	if r.code != exitOK || r.err != "kept of schedule nightly: body, zone, missed, until, paused, key, header, delay, "+
		"dedup, unique; --replace keeps nothing\n" {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	v := d.shown("nightly")
	if m := v.Message; v.Spec != "0 4 * * *" || v.Zone != "Europe/Berlin" || v.State != "paused" || v.Missed != "skip" ||
		v.Until == nil ||
		m.Delay.String() != "5m0s" || m.Key != "k" || m.Headers["a"] != "1" || m.ContentType != "application/json" ||
		m.Dedup != "x" || m.DedupWindow.String() != "1h0m0s" ||
		m.Unique != "u" || m.UniqueFor.String() != "2h0m0s" {
		t.Errorf("%+v %+v", v, m)
	}
	d.has(d.ok("schedule", "show", "nightly"), `body      {"kind":"nightly"}`)
}

// What is given changes, also to nothing.
func TestSchedulePutChangesWhatIsGiven(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("schedule", "put", "nightly", "@daily", "reports", `{"kind":"nightly"}`, "--delay", "5m", "--header", "a=1",
		"--paused", "--dedup", "x", "--unique", "u", "--until", "2090-01-01T00:00:00Z")
	r := d.run("schedule", "put", "nightly", "@daily", "other", "text", "--delay", "0", "--header", "b=2",
		"--paused=false", "--dedup", "", "--unique", "", "--until", "")
	if r.code != exitOK || r.err != "" {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	v := d.shown("nightly")
	if m := v.Message; v.State != "active" || v.Until != nil || m.Topic != "other" || m.Delay != 0 ||
		len(m.Headers) != 1 || m.Headers["b"] != "2" ||
		m.ContentType != "application/octet-stream" || m.Dedup != "" || m.DedupWindow != 0 || m.Unique != "" {
		t.Errorf("%+v %+v", v, m)
	}
}

func TestSchedulePutReplacesWhenItIsTold(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("schedule", "put", "nightly", "@daily", "reports", `{"kind":"nightly"}`, "--delay", "5m", "--paused")
	if r := d.run("schedule", "put", "nightly", "@daily", "reports", "--replace"); r.code != exitOK || r.err != "" {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	if v := d.shown("nightly"); v.State != "active" || v.Message.Delay != 0 || v.Message.preview() != "" {
		t.Errorf("%+v %+v", v, v.Message)
	}
	d.has(d.ok("schedule", "put", "nightly", "@daily", "reports", "--replace"), "unchanged schedule nightly")
}

func TestSchedulePutRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.fails(exitUsage, "--delay -5s is negative", "schedule", "put", "nightly", "@daily", "reports", "x", "--delay", "-5s")
	d.fails(exitUsage, "--unique-for is given without --unique", "schedule", "put", "nightly", "@daily", "reports", "x",
		"--unique-for", "5s")
	d.fails(exitUsage, "--dedup-window is given without --dedup", "schedule", "put", "nightly", "@daily", "reports", "x",
		"--dedup-window", "5s")
	d.fails(exitNotFound, "there is no schedule nightly", "schedule", "show", "nightly")
}

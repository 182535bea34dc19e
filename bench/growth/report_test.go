package growth

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLines: a size that costs more than it may is called missed, one that does not is met.
func TestLines(t *testing.T) {
	t.Parallel()
	row := func(size int, cpu time.Duration) Row {
		return Row{Broker: "memory", Size: size, Rounds: []Cost{{Units: 1000, CPU: cpu, IdleBytes: 12}}}
	}
	var text strings.Builder
	Lines(&text, Shape{Title: "messages", Unit: "message", Idle: "key"},
		[]Row{row(10, 2*time.Millisecond), row(1000, 2200*time.Microsecond), row(1_000_000, 3*time.Millisecond)})
	late := Row{Broker: "memory", Size: 1_000_000, Unreached: "1M takes longer than 1m0s here"}
	Lines(&text, Shape{Title: "messages", Unit: "message"}, []Row{row(10, 2*time.Millisecond), late})
	Lines(&text, Shape{Title: "nothing", Unit: "message"}, []Row{late})
	got := text.String()
	for _, want := range []string{"10: 2.00 µs/message | 1k: 2.20 µs/message | 1.10× | ≤ 1.2×: met | 12 B of an idle key",
		"1M: 3.00 µs/message | 1.50× | ≤ 1.2×: **missed**",
		"10: 2.00 µs/message | 1M: – | – | – | not reached: 1M takes longer than 1m0s here |",
		"nothing | – | – | – | – | not reached: 1M takes longer"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestPagesAreMadeOfTheNewestRun: of each shape on each broker, with the commits of all that stand in them.
func TestPagesAreMadeOfTheNewestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if none, err := Read(filepath.Join(dir, "nowhere")); err != nil || Section(none) != "" || Summary(none) != "" {
		t.Errorf("without results there are %v, %v", none, err)
	}
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	rows := func(broker string, more time.Duration) []Row {
		var all []Row
		for i, n := range []int{1_000, 100_000, 1_000_000} {
			cpu := 3*time.Millisecond + time.Duration(i)*more
			all = append(all, Row{Broker: broker, Shape: "keys", Size: n,
				Rounds: []Cost{{Units: 1000, CPU: cpu, IdleBytes: 94}}})
		}
		return all
	}
	for name, r := range map[string]Report{
		"a.json": {Commit: "new", Began: day.AddDate(0, 0, 1), Load: "0.10", Rows: rows("redis", 0)},
		"b.json": {Commit: "old", Began: day, Load: "9.00", Rows: append(rows("redis", time.Second),
			rows("kafka", 3*time.Millisecond)...)},
	} {
		if err := r.Write(filepath.Join(dir, Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Read(filepath.Join(dir, Dir))
	if err != nil || len(all) != 2 {
		t.Fatalf("read %d, %v", len(all), err)
	}
	summary, section := Summary(all), Section(all)
	for _, want := range []string{"old on 2026-01-02 (load 9.00), new on 2026-01-03",
		"| – | – | 3.0 µs; 1.0, 1.0 | – | 3.0 µs; **2**, **3** |", "| an idle key | – | – | 94 B | – | 94 B |"} {
		if !strings.Contains(summary, want) {
			t.Errorf("no %q in\n%s", want, summary)
		}
	}
	want := "| redis | messages spread over so many keys | 1k: 3.00 µs/message | 1M: 3.00 µs/message | 1.00× |"
	if !strings.Contains(section, want) || strings.Contains(section, "2003.00") {
		t.Errorf("no %q, or what is older, in\n%s", want, section)
	}
}

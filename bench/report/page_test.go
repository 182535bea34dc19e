package report

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/bench/growth"
	"github.com/ferrymq/ferry/bench/periodic"
	"github.com/ferrymq/ferry/bench/plan"
)

// The page says what the committed results say: whoever changes one of them runs `go run ./cmd/bench -docs`.
func TestThePageIsThatOfTheResults(t *testing.T) {
	t.Parallel()
	reports, err := ReadAll("../results")
	if err != nil {
		t.Fatal(err)
	}
	brokers := map[string]bool{}
	for _, r := range reports {
		brokers[r.Broker] = true
		if r.Size == "" || r.Commit == "" {
			t.Errorf("the results of %s do not say of which size and commit they are", r.Broker)
		}
	}
	for _, broker := range []string{"memory", "disk", "redis", "redisstream", "kafka"} {
		if !brokers[broker] {
			t.Errorf("no results of %s are committed", broker)
		}
	}
	every, err := readEvery("../results")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range every {
		p, err := plan.Find(r.Broker)
		if err != nil {
			t.Error(err)
			continue
		}
		kept, err1 := os.ReadFile("../results/" + r.File())
		judged, err2 := r.Judged(p).text()
		if err := errors.Join(err1, err2); err != nil || !bytes.Equal(kept, judged) {
			t.Errorf("%s is not judged by the targets of its plan (%v): run `go run ./cmd/bench -docs` in bench", r.File(), err)
		}
	}
	ticks, err := periodic.Read("../results/" + periodic.File)
	if err != nil || len(ticks.Rows) == 0 {
		t.Errorf("no results of periodic jobs are committed: %v", err)
	}
	page, err1 := os.ReadFile("../../docs/benchmarks.md")
	made, err2 := Page("../results")
	if err := errors.Join(err1, err2); err != nil || string(page) != made {
		t.Errorf("docs/benchmarks.md is not made from bench/results (%v): run `go run ./cmd/bench -docs` in bench", err)
	}
	performance, err1 := os.ReadFile("../../docs/performance.md")
	made, err2 = Performance(string(performance), "../results")
	if err := errors.Join(err1, err2); err != nil || string(performance) != made {
		t.Errorf("the table of growth in docs/performance.md is not made from bench/results (%v): run "+
			"`go run ./cmd/bench -docs` in bench", err)
	}
}

// TestPagesShowWhatThereIs: comparisons with their commits, and growth in both pages.
func TestPagesShowWhatThereIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	compared := Comparison{Package: "./driver/memory", Bench: "Publish|Drain", Old: "aaaa1111 (2026-01-01)",
		New: "bbbb2222 (2026-02-02)", Runs: "10 runs of 300ms in turn", Machine: "a CPU", Command: "make bench-compare",
		Text: "name  old  new\n\nPublish-2  2µ  1µ\n"}
	grown := growth.Report{Commit: "cccc3333", Rows: []growth.Row{{Broker: "disk", Shape: "keys", Size: 1000,
		Rounds: []growth.Cost{{Units: 1, CPU: 7000}}}, {Broker: "disk", Shape: "keys", Size: 100_000,
		Rounds: []growth.Cost{{Units: 1, CPU: 14000}}}}}
	results, page := filepath.Join(dir, "results"), filepath.Join(dir, "docs", "benchmarks.md")
	performance := filepath.Join(dir, "docs", "performance.md")
	file := filepath.Join(results, CompareDir, "memory.txt")
	for path, text := range map[string]string{file: compared.String(), performance: "before\n" + growthBegin + "old\n" +
		growthEnd + "after\n"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(grown.Write(filepath.Join(results, growth.Dir, "disk.json")), WritePages(results, page))
	if err != nil {
		t.Fatal(err)
	}
	for path, wants := range map[string][]string{
		page: {"### `driver/memory`", "Old is aaaa1111 (2026-01-01), new is bbbb2222 (2026-02-02).", "Publish-2  2µ  1µ\n```",
			"## Growth", "| 2.00× | ≤ 1.2×: **missed** |"},
		performance: {"before\n" + growthBegin + "Medians of the rounds of cccc3333", "7.0 µs; **2**", growthEnd + "after\n"},
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %q:\n%s", filepath.Base(path), want, text)
			}
		}
		if path == performance && strings.Contains(string(text), "old\n") {
			t.Error("what stood in the table before is still there")
		}
	}
	if err := os.WriteFile(file, []byte("package: ./driver/memory\nbench: Publish\n\nname\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Page(results); err == nil || !strings.Contains(err.Error(), `does not say what "old" is`) {
		t.Errorf("a comparison that does not say of what: got %v", err)
	}
}

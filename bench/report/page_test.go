package report

import (
	"os"
	"testing"

	"github.com/ferrymq/ferry/bench/periodic"
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
	page, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	ticks, err := periodic.Read("../results/" + periodic.File)
	if err != nil || len(ticks.Rows) == 0 {
		t.Errorf("no results of periodic jobs are committed: %v", err)
	}
	if string(page) != Docs(reports, ticks.Section()) {
		t.Error("docs/benchmarks.md is not made from bench/results: run `go run ./cmd/bench -docs` in bench")
	}
}

package meter

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestARunIsOfTheCommitWhateverItWrote: results of an earlier run are no change of what is measured, anything else is.
func TestARunIsOfTheCommitWhateverItWrote(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(args ...string) {
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@b.c"}, args...)
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	for _, name := range []string{"bench/results/redis.json", "bench/code.go", "docs/benchmarks.md",
		"docs/performance.md"} {
		write(name, "1")
	}
	git("add", "-A")
	git("commit", "-q", "-m", "first")
	for _, name := range []string{"bench/results/redis.json", "bench/results/disk.json", "docs/benchmarks.md",
		"docs/performance.md"} {
		write(name, "2")
	}
	within := filepath.Join(dir, "bench") // where the bench runs
	if got := commitIn(t.Context(), within); got == "unknown" || strings.HasSuffix(got, "-dirty") {
		t.Errorf("after a run the commit is %q", got)
	}
	write("bench/code.go", "2")
	if got := commitIn(t.Context(), within); !strings.HasSuffix(got, "-dirty") {
		t.Errorf("with changed code the commit is %q", got)
	}
	if got := commitIn(t.Context(), t.TempDir()); got != "unknown" {
		t.Errorf("outside of a repository it is %q", got)
	}
}

func TestSharesOfTheMachine(t *testing.T) {
	t.Parallel()
	before := parseStat("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3\n")
	after := parseStat("cpu  150 10 120 900 0 0 0 20 0 0\n")
	if before.busy != 2*time.Second || before.idle != 8*time.Second {
		t.Fatalf("parsed %+v", before)
	}
	// 200 ticks in all: 80 busy of which 40 ours, 100 idle, 20 stolen.
	steal, others := after.shares(before, 400*time.Millisecond)
	if steal != 0.1 || others != 0.2 {
		t.Errorf("steal %v others %v, want 0.1 and 0.2", steal, others)
	}
	if _, others := after.shares(before, 790*time.Millisecond); others != 0 {
		t.Errorf("one tick of others counts as %v, want 0: it is within the grain", others)
	}
	if steal, others := before.shares(before, 0); steal != 0 || others != 0 {
		t.Error("no time passed, yet somebody used some")
	}
}

func TestNoisy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		r    Reading
		want bool
	}{{Reading{}, false}, {Reading{Steal: 0.05}, true}, {Reading{Others: 0.2}, true},
		{Reading{Steal: 0.01, Others: 0.05}, false}} {
		if got := tt.r.Noisy(); got != tt.want {
			t.Errorf("%+v noisy: %v, want %v", tt.r, got, tt.want)
		}
	}
}

var sink []byte

func TestSpanCountsAllocations(t *testing.T) {
	s := Start(func() time.Duration { return 0 })
	for range 100 {
		sink = make([]byte, 4096)
	}
	r := s.Stop()
	if r.Allocs < 100 || r.Elapsed <= 0 {
		t.Errorf("100 allocations and some time read as %+v", r)
	}
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	if m := ThisMachine(); m.Cores < 1 || m.Go == "" {
		t.Errorf("machine %+v", m)
	}
}

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/test/torture/rig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWrongFlagsSayWhatExists(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"-fault fire":                    "kill-consumer",
		"-broker carrier-pigeon":         "there are disk, kafka",
		"-broker memory://":              "there are disk, kafka",
		"-broker disk:///tmp/x":          "there are disk, kafka",
		"-broker disk -fault cut":        "not for disk",
		"kill-consumer":                  "Everything is a flag",
		"-minutes 0":                     "must be positive",
		"-consumers 1":                   "somebody must take over",
		"-schedule at-once":              "begin with",
		"-check /nothing/there":          "no *.history files",
		"-fault none,kill-consumer,fire": "there are:",
	} {
		err := run(t.Context(), strings.Fields(args))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want it to say %q", args, err, says)
		}
	}
}

func TestMinutesAreShared(t *testing.T) {
	t.Parallel()
	c, err := parse([]string{"-fault", "none,cut", "-minutes", "1.5", "-seed", "7"})
	if err != nil {
		t.Fatal(err)
	}
	total := map[string]time.Duration{}
	seeds := map[uint64]bool{}
	for r := range c.rounds() {
		if r.load > rig.Round {
			t.Errorf("a round of %v", r.load)
		}
		total[r.fault.Name] += r.load
		seeds[r.seed] = true
	}
	if total["none"] != 45*time.Second || total["cut"] != 45*time.Second || !seeds[7] || len(seeds) != 3 {
		t.Errorf("shared as %v with seeds %v", total, seeds)
	}
}

func TestFaultsInARowAreNotSplit(t *testing.T) {
	t.Parallel()
	c, err := parse([]string{"-broker", "redis-sentinel", "-fault", "failover-often", "-minutes", "0.1"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for r := range c.rounds() {
		if n++; n > 1 || r.load != r.fault.Least {
			t.Errorf("round %d is a load of %v, want one of %v", n, r.load, r.fault.Least)
		}
	}
}

func TestHistoriesAreKeptAndCheckedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	report := filepath.Join(dir, "reports.json")
	// A lease of a minute: a busy machine takes none away.
	args := []string{"-schedule", "at 1s term producer 1", "-minutes", "0.01", "-rate", "50", "-lease", "1m", "-dir", dir,
		"-json", report}
	if err := run(context.Background(), args); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(report); err != nil || !strings.Contains(string(text), `"ok": true`) {
		t.Errorf("report %s: %v", text, err)
	}
	if err := run(context.Background(), []string{"-check", filepath.Join(dir, "custom-1")}); err != nil {
		t.Error(err)
	}
	name := filepath.Join(dir, "custom-1", "producer-1.1.history") // without it, what consumers got came from nowhere
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := run(context.Background(), []string{"-check", filepath.Join(dir, "custom-1")}); err == nil {
		t.Error("a history with a hole was found clean")
	}
}

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/bench/run"
)

// TestMain lets the test program stand in for the bench, where a measurement starts it again in a process of its own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-sample" {
		if err := bench(context.Background(), os.Args[1:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestAMeasurementInItsOwnProcess(t *testing.T) {
	t.Parallel()
	job := run.Job{Broker: "memory", Scenario: "idle", System: "raw channel", Size: "quick", Round: 1}
	dir := t.TempDir()
	res, err := profiled(dir, inOwnProcess)(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := res.Values["cpu"]; !ok || res.Reading.Elapsed <= 0 {
		t.Errorf("the other process found %+v", res)
	}
	if f, err := os.Stat(filepath.Join(dir, "idle.raw-channel.1.pprof")); err != nil || f.Size() == 0 {
		t.Errorf("it left no profile: %v", err)
	}
}

func TestAMeasurementThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	for want, job := range map[string]run.Job{
		`no scenario "nonsense"`: {Broker: "memory", Scenario: "nonsense", System: "raw channel"}, // an answer with an error
		`no broker "nonsense"`:   {Broker: "nonsense"},                                            // no answer at all
	} {
		if _, err := inOwnProcess(t.Context(), job); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

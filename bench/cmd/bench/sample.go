package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/ferrymq/ferry/bench/plan"
	"github.com/ferrymq/ferry/bench/run"
	"github.com/ferrymq/ferry/bench/scenario"
)

// sampleTimeout ends a measurement that hangs; killAfter is when its process is killed, if even that does not help.
const (
	sampleTimeout = 2 * time.Minute
	killAfter     = sampleTimeout + 15*time.Second
)

// answer is what a process prints that takes one measurement.
type answer struct {
	Result scenario.Result `json:"result"`
	Error  string          `json:"error,omitempty"`
}

// fileName makes a name of a system one of a file.
var fileName = strings.NewReplacer(" ", "-", "/", "-")

// profiled makes every measurement leave a CPU profile in a directory.
func profiled(dir string, execute run.Execute) run.Execute {
	return func(ctx context.Context, j run.Job) (scenario.Result, error) {
		j.Profile = filepath.Join(dir, fileName.Replace(fmt.Sprintf("%s.%s.%d.pprof", j.Scenario, j.System, j.Round)))
		return execute(ctx, j)
	}
}

// inOwnProcess takes a measurement in a process of its own: this program again, with -sample.
func inOwnProcess(ctx context.Context, j run.Job) (scenario.Result, error) {
	job, err := json.Marshal(j)
	if err != nil {
		return scenario.Result{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return scenario.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, killAfter)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-sample", string(job))
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	failed := cmd.Run()
	var a answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return a.Result, fmt.Errorf("%s on %s: the process ended without an answer (%w): %s", j.Scenario, j.System,
			errors.Join(failed, ctx.Err()), lastLines(complaints.String()))
	}
	if a.Error != "" {
		return a.Result, errors.New(a.Error)
	}
	return a.Result, nil
}

// sample is the other side: it takes the measurement and prints the answer.
func sample(ctx context.Context, job string, out io.Writer) error {
	var j run.Job
	if err := json.Unmarshal([]byte(job), &j); err != nil {
		return fmt.Errorf("-sample is for this program itself: %w", err)
	}
	p, err := plan.Find(j.Broker)
	if err != nil {
		return err
	}
	size := scenario.Full()
	if j.Size == scenario.Quick().Name {
		size = scenario.Quick()
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	if j.Profile != "" {
		f, err := os.Create(j.Profile)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var a answer
	if a.Result, err = run.Here(ctx, p, size, j); err != nil {
		a.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(a)
}

// lastLines is the end of what a crashed process said.
func lastLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[:min(len(lines), 5)], " | ")
}

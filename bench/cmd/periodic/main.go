// Command periodic measures schedules of Ferry and of its peers. Run it in the directory bench: go run ./cmd/periodic
// -only redis.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"github.com/ferrymq/ferry/bench/meter"
	"github.com/ferrymq/ferry/bench/periodic"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "periodic:", err)
		os.Exit(1)
	}
}

// job names a system, where its things are and the journal of a process that this one starts; it is for no one else.
const job = "FERRY_PERIODIC_JOB"

func run(ctx context.Context) error {
	if text := os.Getenv(job); text != "" {
		return serve(ctx, strings.Split(text, "\n"))
	}
	only := flag.String("only", "", "only systems whose names contain one of these words, separated by commas")
	results := flag.String("results", "results/"+periodic.File, "file of the results")
	flag.Parse()
	r, err := periodic.Read(*results)
	if err != nil {
		return err
	}
	for _, s := range periodic.Systems() {
		if !wanted(s.Name, *only) {
			continue
		}
		fmt.Printf("%s: about %v\n", s.Name, periodic.Default.Quiet+periodic.Default.Killed+periodic.Default.Settle)
		row := periodic.Row{Date: time.Now().UTC().Truncate(time.Second), Commit: meter.Commit(ctx),
			Machine: meter.ThisMachine(), Load: load()}
		if row.Result, err = periodic.Measure(ctx, s, periodic.Default, command(s)); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		fmt.Printf("  quiet:  %+v\n", row.Quiet)
		if row.Killed != nil {
			fmt.Printf("  killed: %+v\n", *row.Killed)
		}
		r.Put(row)
		if err := r.Write(*results); err != nil {
			return err
		}
	}
	fmt.Println("now run: go run ./cmd/bench -docs")
	return nil
}

func wanted(name, only string) bool {
	for word := range strings.SplitSeq(only, ",") {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// command makes a process of this program that runs a system.
func command(s periodic.System) func(ctx context.Context, where, journal string) *exec.Cmd {
	return func(ctx context.Context, where, journal string) *exec.Cmd {
		c := exec.CommandContext(ctx, "/proc/self/exe")
		c.Env = append(os.Environ(), job+"="+strings.Join([]string{s.Name, where, journal}, "\n"))
		c.Stderr = os.Stderr
		return c
	}
}

func serve(ctx context.Context, words []string) error {
	if len(words) != 3 {
		return fmt.Errorf("%s is %q", job, words)
	}
	j, err := periodic.OpenJournal(words[2])
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what it says of its begin, every two seconds
	for _, s := range periodic.Systems() {
		if s.Name == words[0] {
			return s.Run(ctx, words[1], j)
		}
	}
	return fmt.Errorf("there is no system %q", words[0])
}

// load is the average load of the last minute for each core.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	var average float64
	_, _ = fmt.Sscan(string(text), &average)
	return average / float64(runtime.NumCPU())
}

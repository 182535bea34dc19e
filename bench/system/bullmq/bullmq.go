// Package bullmq is the peer BullMQ: a job queue for Node.js on Redis. A script in Node takes the measurements.
package bullmq

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/bench/load"
	"github.com/ferrymq/ferry/bench/meter"
	"github.com/ferrymq/ferry/bench/scenario"
	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/bench/system/redisserver"
)

// concurrency is that of the one worker.
const concurrency = 100

// scenarios are those that the script knows.
var scenarios = []string{"publish-1", "publish-50", "publish-200", "publish-batch", "drain", "pickup", "delay",
	"stored", "idle"}

// System is BullMQ on a Redis of its own.
type System struct{ installed *installation }

// New returns the system. Node and the packages are looked for when they are needed.
func New() System { return System{installed: &installation{}} }

var _ scenario.Foreign = System{}

// Info describes it.
func (System) Info() system.Info {
	return system.Info{
		Name: "BullMQ", Version: version(),
		Settings: fmt.Sprintf("%s; measured by a script in Node, with bodies of 1,024 characters; one queue, one worker "+
			"with concurrency %d; removeOnComplete; batches by addBulk", redisserver.Settings, concurrency),
		Why: "addBulk saves a round trip for each job, removeOnComplete frees what was handled, as a queue must; its guide " +
			"names a concurrency above 1 and several workers in processes of their own as the two ways to more throughput: " +
			"only the first is used, because two cores are shared with Redis; other values of concurrency were not tried",
	}
}

// Lacks is not asked: Answers says it by scenario.
func (System) Lacks(system.Feature) string { return "" }

// Open is not used: the script opens its own session.
func (System) Open(context.Context, system.Options) (system.Session, error) {
	return nil, errors.New("BullMQ is measured by its own script")
}

// Answers says why a scenario is not measured.
func (s System) Answers(name string) string {
	if !slices.Contains(scenarios, name) {
		return "the script for Node has no such scenario"
	}
	if _, err := s.installed.dir(); err != nil {
		return err.Error()
	}
	return ""
}

// ask is what the script is asked for. Times are in milliseconds.
type ask struct {
	Scenario    string  `json:"scenario"`
	Port        string  `json:"port"`
	Seed        uint64  `json:"seed"`
	Concurrency int     `json:"concurrency"`
	Run         float64 `json:"run_ms"`
	Fill        float64 `json:"fill_ms"`
	Backlog     int     `json:"backlog"`
	Heap        int     `json:"heap"`
	Pickups     int     `json:"pickups"`
	PickupTime  float64 `json:"pickup_ms"`
	Delays      int     `json:"delays"`
	DelaySpan   float64 `json:"delay_span_ms"`
	Idle        float64 `json:"idle_ms"`
}

// answer is what it says.
type answer struct {
	Values    map[string]float64 `json:"values"`
	Messages  int                `json:"messages"`
	Elapsed   float64            `json:"elapsed_ms"`
	CPU       float64            `json:"cpu_us"`
	ServerCPU float64            `json:"server_cpu_us"`
	Verdict   load.Verdict       `json:"verdict"`
}

// Measure starts a Redis and runs the script against it.
func (s System) Measure(ctx context.Context, name string, env scenario.Env) (res scenario.Result, err error) {
	dir, err := s.installed.dir()
	if err != nil {
		return res, err
	}
	server, err := redisserver.Start()
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	question, err := json.Marshal(question(name, env, server))
	if err != nil {
		return res, err
	}
	cmd := exec.CommandContext(ctx, "node", "--input-type=module", "-", string(question))
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(script) // imports are resolved from the directory
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	span := meter.Start(func() time.Duration { return childrenCPU(cmd, server) })
	if err := cmd.Run(); err != nil {
		return res, fmt.Errorf("the script failed: %w: %.500s", errors.Join(err, ctx.Err()), complaints.String())
	}
	res.Reading = span.Stop()
	var a answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return res, fmt.Errorf("the script answered %.200q: %w", out.String(), err)
	}
	res.Values, res.Messages, res.Verdict = a.Values, a.Messages, a.Verdict
	// The shares of the machine are those of the whole run; the rest is of the measured stretch.
	res.Reading.Elapsed, res.Reading.CPU, res.Reading.ServerCPU, res.Reading.Allocs = millis(a.Elapsed), millis(a.CPU/1e3),
		millis(a.ServerCPU/1e3), 0
	return res, res.Verdict.Err()
}

func question(name string, env scenario.Env, server *redisserver.Server) ask {
	size := env.Size
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	_, port, _ := strings.Cut(server.Addr(), ":")
	return ask{Scenario: name, Port: port, Seed: env.Seed, Concurrency: concurrency, Run: ms(size.Run),
		Fill: ms(size.Fill), Backlog: size.Backlog, Heap: size.Heap,
		Pickups: size.Pickups, PickupTime: ms(size.PickupTime), Delays: size.Delays, DelaySpan: ms(size.DelaySpan),
		Idle: ms(size.Idle)}
}

// childrenCPU is the processor time of Redis, and of Node once it has ended.
func childrenCPU(cmd *exec.Cmd, server *redisserver.Server) time.Duration {
	u, err := server.Usage()
	if err != nil {
		return 0 // only the share of others on the machine would be wrong
	}
	if cmd.ProcessState != nil {
		u.CPU += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return u.CPU
}

func millis(ms float64) time.Duration { return time.Duration(ms * 1e6) }

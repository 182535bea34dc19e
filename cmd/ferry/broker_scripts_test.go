package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

// scriptBroker is a broker that the scripts in testdata/script/broker run on.
type scriptBroker struct {
	name string
	// start returns the URL of an empty broker for one script, which env.Defer may tidy up. FERRY_BROKER is set to it,
	// and the commands run as processes. Empty: commands run in this process, on a broker in memory.
	start func(env *testscript.Env) (url string, err error)
	// plant puts bytes that cannot be decoded into a topic of the broker, and waits until they are found. Scripts that
	// need it have the condition [plants].
	plant func(url, topic, raw string) error
	// inside says that commands run in this process all the same, which is faster: the broker is behind a server.
	inside bool
}

// scriptBrokers are all brokers that the scripts run on: one row for each driver.
func scriptBrokers(t *testing.T) []scriptBroker {
	server := redistest.Single(t, redistest.Options{AOF: "everysec"})
	return []scriptBroker{
		{name: "memory"},
		{
			name:  "disk",
			start: func(env *testscript.Env) (string, error) { return emptyStore(filepath.Join(env.WorkDir, "data")) },
			plant: plantOnDisk,
		},
		{
			name:  "redis",
			start: func(*testscript.Env) (string, error) { return server.URL() + "?prefix=s" + rand.Text(), nil },
			plant: func(url, topic, raw string) error { return plantOnRedis(server, url, topic, raw) },
		},
		{
			name: "redisstream",
			start: func(*testscript.Env) (string, error) {
				// bounds are of a partition
				return strings.Replace(server.URL(), "redis", "redisstream", 1) + "?partitions=1&prefix=s" + rand.Text(), nil
			},
			plant: func(url, topic, raw string) error { return plantOnStream(server, url, topic, raw) },
		},
	}
}

func plantOnDisk(url, topic, raw string) error {
	d, err := disk.New(context.Background(), disk.Options{Dir: strings.TrimPrefix(url, "disk://")})
	if err != nil {
		return err
	}
	return errors.Join(plantOne(d, topic, raw), d.Close(context.Background()))
}

// plantOnRedis publishes a message and overwrites what is stored of it.
func plantOnRedis(server *redistest.Server, url, topic, raw string) error {
	ctx := context.Background()
	b, err := open.URL(ctx, url)
	if err != nil {
		return err
	}
	r, err := ferry.Publish(ctx, b, topic, "to be overwritten")
	if err == nil {
		_, prefix, _ := strings.Cut(url, "prefix=")
		_, err = server.Command("HSET", "{"+prefix+":"+topic+":0}:bodies", strconv.FormatUint(r.Ref.Pos, 10), raw)
	}
	if err == nil {
		err = passPlanted(b.Driver(), topic)
	}
	return errors.Join(err, b.Close(ctx))
}

// plantOnStream adds an entry that is no message, as another program might.
func plantOnStream(server *redistest.Server, url, topic, raw string) error {
	ctx := context.Background()
	b, err := open.URL(ctx, url)
	if err != nil {
		return err
	}
	_, prefix, _ := strings.Cut(url, "prefix=")
	if err = b.Driver().EnsureGroup(ctx, topic, driver.DefaultGroup, driver.GroupOptions{}); err == nil {
		_, err = server.Command("XADD", "{"+prefix+"/"+topic+"/0}:stream", "*", "what", raw)
	}
	if err == nil {
		err = passPlanted(b.Driver(), topic)
	}
	return errors.Join(err, b.Close(ctx))
}

// emptyStore makes a store as a program does that has not published yet: the commands do not.
func emptyStore(dir string) (url string, err error) {
	d, err := disk.New(context.Background(), disk.Options{Dir: dir})
	if err == nil {
		err = d.Close(context.Background())
	}
	return "disk://" + dir, err
}

func TestBrokerScripts(t *testing.T) {
	t.Parallel()
	for _, b := range scriptBrokers(t) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			b.run(t, "testdata/script/broker")
		})
		if b.name != "disk" { // a directory is open in one process only
			t.Run(b.name+" members", func(t *testing.T) {
				t.Parallel()
				b.run(t, "testdata/script/members")
			})
		}
		if b.name == "redisstream" { // what only drivers with a log can do
			t.Run(b.name+" log", func(t *testing.T) {
				t.Parallel()
				b.run(t, "testdata/script/log")
			})
		}
	}
}

func (b scriptBroker) run(t *testing.T, dir string) {
	testscript.Run(t, testscript.Params{
		Dir:   dir,
		Setup: b.setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"does": scriptDoes, "exits": scriptExits,
			"dies": scriptDies, "plants": scriptPlants, "joins": scriptJoins, "runs": scriptRuns,
			"until": scriptUntil, "begins": scriptBegins, "spools": scriptSpools, "captures": scriptCaptures},
		Condition:          b.condition,
		RequireUniqueNames: true,
	})
}

// condition tells scripts what the broker has: [plants] for plant, [server] if a server is in front of it, which is a
// member and does operations.
func (b scriptBroker) condition(cond string) (bool, error) {
	switch cond {
	case "plants":
		return b.plant != nil || b.start == nil, nil
	case "server":
		return b.inside, nil
	}
	return false, fmt.Errorf("there is no condition %q", cond)
}

// The keys of values that scripts carry.
type scriptKey string

const (
	keyBroker scriptKey = "broker" // scriptBroker
	keyMemory scriptKey = "memory" // *memory.Driver, in this process
)

func (b scriptBroker) setup(env *testscript.Env) error {
	env.Values[keyBroker] = b
	env.Values[keyWorkers] = new([]*worker.Worker)
	if b.start != nil {
		url, err := b.start(env)
		env.Setenv("FERRY_BROKER", url)
		return err
	}
	m, err := memory.New(context.Background(), memory.Options{})
	if err != nil {
		return err
	}
	env.Values[keyMemory] = m
	env.Setenv("FERRY_BROKER", "test://memory")
	env.Defer(func() { _ = m.Close(context.Background()) })
	return nil
}

// scriptDoes runs a command line that must succeed. With <file its standard input is that file:
// does ferry <lines pub orders --ndjson
func scriptDoes(ts *testscript.TestScript, neg bool, args []string) {
	scriptExits(ts, neg, append([]string{"0"}, args...))
}

// scriptExits runs a command line that must end with one exit code: exits 3 ferry topic show orders
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || args[1] != "ferry" {
		ts.Fatalf("usage: does ferry args..., or exits code ferry args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := invoke(ts, args[2:], ts.Stdout(), ts.Stderr()); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// invoke runs ferry, here or as a process, and returns its exit code.
func invoke(ts *testscript.TestScript, args []string, stdout, stderr io.Writer) int {
	input := ""
	if file, ok := strings.CutPrefix(args[0], "<"); ok {
		input, args = ts.ReadFile(file), args[1:]
	}
	opens := realOpen
	m, ok := ts.Value(keyMemory).(*memory.Driver)
	if ok {
		opens = opensKept(m)
	}
	b, _ := ts.Value(keyBroker).(scriptBroker) // scripts of other tests have none
	if ok || b.inside {
		return run(context.Background(), process{
			args: args, in: strings.NewReader(input), out: stdout, err: stderr, open: opens,
			env: func(name string) (string, bool) { v := ts.Getenv(name); return v, v != "" },
		})
	}
	bin, _, _ := strings.Cut(ts.Getenv("PATH"), string(filepath.ListSeparator)) // where testscript puts our commands
	c := exec.Command(filepath.Join(bin, "ferry"), args...)
	c.Dir, c.Stdin, c.Stdout, c.Stderr = ts.MkAbs("."), strings.NewReader(input), stdout, stderr
	c.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"), "FERRY_BROKER="+ts.Getenv("FERRY_BROKER"),
		keysVariable+"="+ts.Getenv(keysVariable))
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	return c.ProcessState.ExitCode()
}

// scriptDies makes the next message of a group a dead letter: dies TOPIC GROUP REASON ERROR
func scriptDies(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: dies topic group reason error")
	}
	s := driver.Settlement{Outcome: driver.Dead, Failure: &driver.Failure{Reason: driver.Reason(args[2]), Error: args[3]}}
	if m, ok := ts.Value(keyMemory).(*memory.Driver); ok {
		ts.Check(settleOne(m, args[0], args[1], s))
		return
	}
	b, err := open.URL(context.Background(), ts.Getenv("FERRY_BROKER"))
	ts.Check(err)
	ts.Check(errors.Join(settleOne(b.Driver(), args[0], args[1], s), b.Close(context.Background())))
}

// scriptPlants puts bytes that cannot be decoded into a topic: plants TOPIC BYTES
func scriptPlants(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: plants topic bytes")
	}
	if m, ok := ts.Value(keyMemory).(*memory.Driver); ok {
		ts.Check(plantOne(m, args[0], args[1]))
		return
	}
	ts.Check(ts.Value(keyBroker).(scriptBroker).plant(ts.Getenv("FERRY_BROKER"), args[0], args[1]))
}

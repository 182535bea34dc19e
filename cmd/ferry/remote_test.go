package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

// kept is a driver that commands cannot close, so that the next one finds what the last one did.
type kept struct{ driver.Driver }

func (kept) Close(context.Context) error { return nil }

// opensKept returns an opener that opens d whatever the URL is.
func opensKept(d driver.Driver) opener {
	return func(_ context.Context, _ string, opts ...ferry.Options) (*ferry.Broker, error) {
		return ferry.New(kept{d}, append(opts, ferry.Options{})[0])
	}
}

// desk runs commands in this process on one broker in memory.
type desk struct {
	*testing.T
	driver driver.Driver
	memory *memory.Driver
	env    map[string]string
	in     io.Reader
	errTo  io.Writer // in place of the result's err
}

// done is how a command ended.
type done struct {
	code     int
	out, err string
}

func newDesk(t *testing.T) *desk {
	m := newMemory(t, memory.Options{})
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &desk{T: t, driver: m, memory: m, env: map[string]string{"FERRY_BROKER": "test://desk"}}
}

// run runs a command line.
func (d *desk) run(args ...string) done { return d.runUntil(context.Background(), args...) }

func (d *desk) runUntil(ctx context.Context, args ...string) done {
	var out, err bytes.Buffer
	p := process{
		args: args, in: d.in, out: &out, err: &err, open: opensKept(d.driver),
		env: func(name string) (string, bool) { v, ok := d.env[name]; return v, ok },
	}
	if p.in == nil {
		p.in = strings.NewReader("")
	}
	if d.errTo != nil {
		p.err = d.errTo
	}
	code := run(ctx, p)
	return done{code, out.String(), err.String()}
}

// ok runs a command line that must succeed, and returns its output.
func (d *desk) ok(args ...string) string {
	d.Helper()
	r := d.run(args...)
	if r.code != exitOK {
		d.Fatalf("ferry %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// fails runs a command line that must fail with this code, this error and a hint as the last line.
func (d *desk) fails(code int, want string, args ...string) done {
	d.Helper()
	r := d.run(args...)
	lines := strings.Split(strings.TrimSpace(r.err), "\n")
	if r.code != code || !strings.Contains(r.err, want) || !strings.HasPrefix(lines[len(lines)-1], "hint: ") {
		d.Errorf("ferry %s: exit code %d, want %d, and %q with a hint at the end:\n%s", strings.Join(args, " "), r.code, code,
			want, r.err)
	}
	return r
}

// has fails unless the text contains all parts.
func (d *desk) has(text string, parts ...string) {
	d.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			d.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

// hasNot fails if the text contains one of the parts.
func (d *desk) hasNot(text string, parts ...string) {
	d.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			d.Errorf("%q is in:\n%s", part, text)
		}
	}
}

// put publishes a message by its id.
func (d *desk) put(m driver.Message) driver.Receipt {
	d.Helper()
	m.OwnID = true
	r, err := d.driver.Publish(context.Background(), []*driver.Message{&m}, driver.PublishOptions{})
	if err != nil {
		d.Fatal(err)
	}
	return r[0]
}

// settle receives one message of a group and settles it.
func (d *desk) settle(topic, group string, outcome driver.Outcome, f *driver.Failure) {
	d.Helper()
	if err := settleOne(d.driver, topic, group, driver.Settlement{Outcome: outcome, Failure: f,
		After: time.Hour}); err != nil {
		d.Fatal(err)
	}
}

func settleOne(b driver.Driver, topic, group string, s driver.Settlement) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sub, err := b.Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Group: group, Instance: "desk"})
	if err != nil {
		return err
	}
	ds, err := sub.Receive(ctx, 1)
	if err == nil {
		s.Delivery = ds[0]
		err = errors.Join(sub.Settle(ctx, []driver.Settlement{s})...)
	}
	return errors.Join(err, sub.Close(ctx))
}

// bury publishes a message and makes it a dead letter of the group "default".
func (d *desk) bury(id string, f driver.Failure) {
	d.Helper()
	d.put(driver.Message{ID: id, Topic: "orders", Key: "k", Body: []byte("body of " + id)})
	d.settle("orders", "default", driver.Dead, &f)
}

func (d *desk) stats(topic string) driver.TopicStats {
	d.Helper()
	st, err := d.driver.Stats(context.Background(), topic)
	if err != nil {
		d.Fatal(err)
	}
	return st
}

// plant puts bytes that cannot be decoded into the topic, and waits until they are found.
func (d *desk) plant(topic, raw string) {
	d.Helper()
	if err := plantOne(d.memory, topic, raw); err != nil {
		d.Fatal(err)
	}
}

func plantOne(m interface {
	driver.Driver
	StoreRaw(ctx context.Context, topic string, raw []byte) error
}, topic, raw string) error {
	if err := m.StoreRaw(context.Background(), topic, []byte(raw)); err != nil {
		return err
	}
	return passPlanted(m, topic)
}

// passPlanted makes sure that bytes which cannot be decoded were found.
func passPlanted(m driver.Driver, topic string) error {
	ctx := context.Background()
	behind := []*driver.Message{{ID: "behind", Topic: topic}}
	if _, err := m.Publish(ctx, behind, driver.PublishOptions{}); err != nil {
		return err
	}
	return settleOne(m, topic, "default", driver.Settlement{}) // who gets it has passed the bytes
}

// every is each command on a broker, with arguments that fit.
var every = [][]string{
	{"pub", "orders", "x"}, {"sub", "orders"}, {"topic", "ls"}, {"topic", "show", "orders"}, {"topic", "create", "orders"},
	{"topic", "alter", "orders", "--keep", "1h"}, {"topic", "pause", "orders"}, {"topic", "resume", "orders"},
	{"topic", "purge", "orders", "--yes"}, {"topic", "retain", "orders"}, {"topic", "trim", "orders"},
	{"topic", "rm", "orders", "--yes"},
	{"group", "ls", "orders"}, {"group", "create", "orders", "g"}, {"group", "rm", "orders", "g", "--yes"},
	{"group", "reset", "orders", "g", "--to", "end", "--yes"}, {"group", "replay", "orders", "g", "--yes"},
	{"group", "pending", "orders", "g"},
	{"msg", "ls", "orders"}, {"msg", "range", "orders"}, {"msg", "show", "orders", "0-1"},
	{"msg", "rm", "orders", "0-1", "--yes"}, {"msg", "move", "orders", "0-1"},
	{"dlq", "ls"}, {"dlq", "show", "orders", "0-1"}, {"dlq", "retry", "orders", "0-1"},
	{"dlq", "rm", "orders", "0-1", "--yes"}, {"dlq", "edit", "orders", "0-1", "--body", "x"},
	{"dlq", "move", "orders", "0-1", "--to", "other"}, {"dlq", "expire", "orders", "--max-count", "1", "--yes"},
	{"dlq", "export", "orders"},
	{"parse-errors", "ls"}, {"parse-errors", "show", "orders", "0-1"},
	{"parse-errors", "requeue", "orders", "0-1", "--body", "x"}, {"parse-errors", "rm", "orders", "0-1", "--yes"},
	{"parse-errors", "move", "orders", "0-1", "--to", "other"},
	{"parse-errors", "expire", "orders", "--max-count", "1", "--yes"}, {"parse-errors", "export", "orders"},
	{"audit"}, {"doctor"},
}

func TestNoBrokerOrOneThatWouldBeEmptyIsRefused(t *testing.T) {
	t.Parallel()
	for _, args := range every {
		d := newDesk(t)
		d.env = nil
		r := d.fails(exitUsage, "no broker is given", args...)
		d.has(r.err, "FERRY_BROKER_FILE")
		for _, url := range []string{"memory", "memory://", "MEMORY://?max_body=5"} {
			r := d.fails(exitFailure, "memory:// broker lives inside one process", append(args, "--broker", url)...)
			d.has(r.err, "ferry dev")
			d.hasNot(r.out, "orders")
		}
		if topics, _ := d.driver.Topics(t.Context()); len(topics) > 0 {
			t.Errorf("%v touched the broker", args)
		}
	}
}

func TestEveryCommandChecksItsOutputAndTeaches(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, args := range every {
		d.fails(exitUsage, `--output "yaml" does not exist`, append(args, "--output", "yaml")...)
		help := d.ok(append(args[:len(args):len(args)], "--help")...)
		d.has(help, "Examples:", "--broker", "FERRY_BROKER_FILE", "table, json or ndjson")
	}
	d.has(d.ok("--help"), "3 not found")
	for _, noun := range []string{"topic", "group", "msg", "dlq", "parse-errors"} {
		d.has(d.ok(noun), "Examples:", "Available Commands:")
		d.fails(exitUsage, `unknown command "nonsense"`, noun, "nonsense")
	}
	d.has(d.fails(exitUsage, `unknown command "shwo"`, "topic", "shwo").err, "did you mean 'ferry topic show'?")
}

func TestEveryCommandNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"ferry pub: TOPIC is missing", []string{"pub"}},
		{"ferry group create: GROUP is missing", []string{"group", "create", "orders"}},
		{"ferry msg cancel: MESSAGE is missing", []string{"msg", "cancel", "orders"}},
		{"no MESSAGE is given", []string{"msg", "rm", "orders"}},
		{`ferry topic show takes no argument "b"`, []string{"topic", "show", "a", "b"}},
		{`topic name "a{b}" is not allowed`, []string{"topic", "show", "a{b}"}},
		{`topic name "\x1b[31m" is not allowed`, []string{"pub", "\x1b[31m", "x"}},
		{`group name "a b" is not allowed`, []string{"group", "create", "orders", "a b"}},
		{`group name "a b" is not allowed`, []string{"topic", "pause", "orders", "--group", "a b"}},
	} {
		d.fails(exitUsage, c.want, c.args...)
	}
	if topics, _ := d.driver.Topics(t.Context()); len(topics) > 0 {
		t.Error("something was written")
	}
}

func TestWhatIsNotThereEndsWithCode3(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, args := range every {
		needsNothing := args[0] == "pub" || args[len(args)-1] == "ls" || len(args) == 1 || args[1] == "create"
		if !needsNothing {
			d.fails(exitNotFound, "orders", args...)
		}
	}
	d.fails(exitNotFound, "orders", "audit", "orders")
	d.fails(exitNotFound, "orders", "dlq", "ls", "orders")
	d.ok("pub", "orders", "x")
	d.fails(exitNotFound, `no group "g"`, "msg", "ls", "orders", "--group", "g")
	d.fails(exitNotFound, "no message", "msg", "show", "orders", "nothing")
	d.fails(exitNotFound, `has no group "g"`, "sub", "orders", "--group", "g")
}

func TestAVariableNeverConfirms(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("pub", "orders", "x")
	d.env["FERRY_YES"], d.env["FERRY_ALL"], d.env["FERRY_ACK"], d.env["FERRY_FIX"] = "true", "true", "true", "true"
	d.fails(exitUsage, "nobody can be asked", "topic", "rm", "orders")
	d.fails(exitUsage, "no MESSAGE is given", "dlq", "rm", "orders")
	d.env["FERRY_OUTPUT"] = "ndjson"
	d.has(d.ok("sub", "orders", "--count", "1"), `"body":"x"`)
	if st := d.stats("orders"); st.Groups[0].Acked != 0 || st.Groups[0].Ready != 1 {
		t.Errorf("%+v", st.Groups[0])
	}
}

// A password on the command line works, and is told to be visible.
func TestAPasswordOnTheCommandLineIsWarnedOf(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for url, want := range map[string]bool{"redis://user:Canary7@host": true, "redis://:Canary7@host/1": true,
		"redis://host:6379": false, "redis://user@host:6379": false} {
		for _, args := range [][]string{{"topic", "ls", "--broker", url}, {"topic", "ls", "--broker=" + url}} {
			r := d.run(args...)
			d.hasNot(r.out+r.err, "Canary7")
			if got := strings.Contains(r.err, "note: others on this machine"); got != want || r.code != exitOK {
				t.Errorf("%s: warned is %v, exit code %d", url, got, r.code)
			}
		}
	}
	d.env["FERRY_BROKER"] = "redis://user:Canary7@host"
	if r := d.run("topic", "ls"); r.err != "" {
		t.Errorf("a password in the environment: %q", r.err)
	}
}

// A secret in the URL is repeated by no command, whatever goes wrong.
func TestTheURLIsNeverShown(t *testing.T) {
	t.Parallel()
	for _, args := range every {
		d := newDesk(t)
		d.env["FERRY_BROKER"] = "carrier-pigeon://user:Canary7@loft"
		r := d.run(args...)
		d.hasNot(r.out+r.err, "Canary7")
		var out, err bytes.Buffer
		env := func(name string) (string, bool) { v, ok := d.env[name]; return v, ok }
		code := run(t.Context(), process{args: args, env: env, in: strings.NewReader(""), out: &out, err: &err,
			open: realOpen})
		d.hasNot(out.String()+err.String(), "Canary7")
		if code != exitUsage {
			t.Errorf("%v: exit code %d, want %d: %s", args, code, exitUsage, err.String())
		}
	}
}

// newMemory returns an empty broker in memory.
func newMemory(t testing.TB, o memory.Options) *memory.Driver {
	t.Helper()
	d, err := memory.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

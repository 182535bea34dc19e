package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/spool/spooldisk"
	"github.com/ferrymq/ferry/transaction"
	"github.com/ferrymq/ferry/wecom/wecomtest"
)

// serverConfig has the server of a script send notifications to a vendor, and evaluate a rule that always fires.
const serverConfig = `notify:
  channels: {hook: {kind: webhook, unsigned: true, endpoints: [ops], allow_private: [127.0.0.0/8, "::1/128"]}}
alerts:
  every: 1s
  rules: [{name: it runs, when: broker_up > 0, text: "{subject} is up"}]
  channels: {ops: [{channel: hook, to: ops}]}
`

// TestServerScripts runs the scripts of brokers through a server in a process of its own, on disk, on Redis and on
// Redis Streams, and those of what only a server has.
func TestServerScripts(t *testing.T) {
	t.Parallel()
	redis := redistest.Single(t, redistest.Options{AOF: "everysec"})
	vendor := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(vendor.Close)
	prefixed := func(scheme, options string) func(*testscript.Env) (string, error) {
		return func(*testscript.Env) (string, error) {
			return strings.Replace(redis.URL(), "redis", scheme, 1) + "?" + options + "prefix=s" + rand.Text(), nil
		}
	}
	onDisk := func(env *testscript.Env) (string, error) { return emptyStore(filepath.Join(env.WorkDir, "data")) }
	for _, on := range []struct {
		name, scripts, config string
		broker                func(env *testscript.Env) (string, error)
	}{
		{"disk", "broker", "", onDisk},
		{"disk", "members", "", onDisk},
		{"disk", "server", serverConfig, onDisk},
		{"redis", "broker", "", prefixed("redis", "")},
		{"redis", "members", "", prefixed("redis", "")},
		{"redis", "server", serverConfig, prefixed("redis", "")},
		{"redisstream", "log", "", prefixed("redisstream", "partitions=1&")},
	} {
		t.Run(on.name+" "+on.scripts, func(t *testing.T) {
			t.Parallel()
			b := scriptBroker{name: on.name, inside: true, start: func(env *testscript.Env) (string, error) {
				address, err := on.broker(env)
				if err != nil {
					return "", err
				}
				return serveScript(t, env, address, on.config, vendor.URL)
			}}
			b.run(t, "testdata/script/"+on.scripts)
		})
	}
}

// serveScript starts the server of a script on a broker, and returns the URL at which commands reach it as an
// administrator.
func serveScript(t *testing.T, env *testscript.Env, broker, config, vendor string) (string, error) {
	token, err := makeToken(broker)
	if err != nil {
		return "", err
	}
	file, secret := filepath.Join(env.WorkDir, "ferry.yaml"), filepath.Join(env.WorkDir, "token")
	if err := errors.Join(os.WriteFile(file, []byte(config), 0o600),
		os.WriteFile(secret, []byte(token), 0o600)); err != nil {
		return "", err
	}
	s := serve(t, []string{"FERRY_BROKER=" + broker, "FERRY_NOTIFY_HOOK_OPS_URL=" + vendor}, "serve", "--listen",
		"127.0.0.1:0", "--config", file)
	env.Defer(s.kill)
	service := wecomtest.Start(wecomtest.Options{})
	env.Defer(service.Close)
	c := service.Config()
	for name, value := range map[string]string{
		"CORP": c.Corp, "SECRET": string(c.Secret), "VENDOR": c.Vendor, "ACCOUNTS": "kf1,kf2", "ALLOW_PRIVATE": "127.0.0.0/8",
	} {
		env.Setenv("FERRY_WECOM_"+name, value)
	}
	return "ferry" + strings.TrimPrefix(s.url, "http") + "?token_file=" + secret, nil
}

// scriptUntil runs a command line until its output matches: until regexp ferry alert ls
func scriptUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || args[1] != "ferry" {
		ts.Fatalf("usage: until regexp ferry args...")
	}
	wanted := regexp.MustCompile(args[0])
	var out bytes.Buffer
	awaits(ts, func() bool {
		out.Reset()
		return invoke(ts, args[2:], &out, io.Discard) == exitOK && wanted.Match(out.Bytes())
	})
	_, err := ts.Stdout().Write(out.Bytes())
	ts.Check(err)
}

// scriptBegins opens a transaction over two topics that nobody decides, and sets a variable to its id: begins TX bills
// parcels
func scriptBegins(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: begins NAME topic topic")
	}
	ctx := context.Background()
	b := openScript(ts)
	tx, err := transaction.Begin(b, transaction.Options{Kind: "orders", Subject: "order 17"})
	if err == nil {
		_, err = tx.Publish(ctx, &ferry.Message{Topic: args[1]}, &ferry.Message{Topic: args[2]})
	}
	ts.Check(errors.Join(err, b.Close(ctx)))
	ts.Setenv(args[0], tx.ID())
}

// openScript opens the broker of a script.
func openScript(ts *testscript.TestScript) *ferry.Broker {
	b, err := open.URL(context.Background(), ts.Getenv("FERRY_BROKER"))
	if m, ok := ts.Value(keyMemory).(*memory.Driver); ok {
		b, err = opensKept(m)(context.Background(), "")
	}
	ts.Check(err)
	return b
}

// scriptSpools leaves a spool with messages behind, as a program does whose broker is away: spools dir orders 3
func scriptSpools(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: spools dir topic")
	}
	ctx := context.Background()
	m, err := memory.New(ctx, memory.Options{})
	ts.Check(err)
	d, err := spooldisk.Open(ctx, &absent{Driver: m}, spooldisk.Options{Root: ts.MkAbs(args[0])})
	ts.Check(err)
	for i := range 3 {
		one := &driver.Message{ID: fmt.Sprintf("%s-%d", args[1], i+1), Topic: args[1], Key: "ann", Body: []byte("kept")}
		_, err := d.Publish(ctx, []*driver.Message{one}, driver.PublishOptions{})
		ts.Check(err)
	}
	ts.Check(d.Close(ctx))
}

// elsewhere are commands that no script asks a server for, and why.
var elsewhere = map[string]string{
	"ferry dev":          "starts one: dev.txtar, TestDevServes",
	"ferry serve":        "is one: serve.txtar",
	"ferry bench":        "measures: bench.txtar",
	"ferry backup":       "copies a directory: backup.txtar",
	"ferry top":          "needs a terminal: top.txtar, TestTopOnATerminal",
	"ferry version":      "version.txtar",
	"ferry cheat":        "help.txtar",
	"ferry init":         "ctx.txtar",
	"ferry config check": "serve.txtar",
	"ferry ctx ls":       "ctx.txtar",
	"ferry ctx rm":       "ctx.txtar",
	"ferry ctx set":      "ctx.txtar",
	"ferry ctx use":      "ctx.txtar",
}

// TestEveryCommandIsScripted: each command stands in a script that runs through a server, and those that ask none in
// another one.
func TestEveryCommandIsScripted(t *testing.T) {
	t.Parallel()
	through, all := scripts(t, "broker", "members", "log", "server", "guard"), scripts(t, ".")
	for _, command := range leaves(newRoot(process{env: func(string) (string, bool) { return "", false }})) {
		where := through
		if elsewhere[command] != "" {
			where = all
		}
		said := regexp.MustCompile(`(?m)^\S.*\bferry (<\S+ )?` + strings.TrimPrefix(command, "ferry ") + `( |$)`)
		if !said.MatchString(where) {
			t.Errorf("no script runs %s", command)
		}
	}
}

// scripts returns the text of the scripts in some directories.
func scripts(t *testing.T, dirs ...string) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join("testdata/script", dir, "*.txtar"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no scripts: %v", dir, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	return all.String()
}

// leaves returns the paths of the commands that do something.
func leaves(c *cobra.Command) []string {
	if c.Name() == "help" || c.Name() == "completion" || c.Hidden {
		return nil
	}
	if !c.HasSubCommands() {
		return []string{c.CommandPath()}
	}
	var all []string
	for _, sub := range c.Commands() {
		all = append(all, leaves(sub)...)
	}
	return all
}

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/open"
)

// processStage runs real processes against a broker that runs beside them, each through proxies of its own.
type processStage struct {
	broker  *ferry.Broker // for looking
	o       Options
	bin     string // directory of the built commands
	backend backend

	mu        sync.Mutex
	processes []*spawned
}

// backend is where a broker is.
type backend struct {
	url     string
	behind  []string // addresses of a set, which clients learn from each other
	servers servers  // nil if they are not ours to harm
	close   func()
}

// openURL is for a broker that runs already.
func openURL(ctx context.Context, o Options) (stage, error) {
	return openProcesses(ctx, o, backend{url: o.Broker, close: func() {}})
}

// openProcesses connects to a broker, and builds the commands if that is not done.
func openProcesses(ctx context.Context, o Options, b backend) (stage, error) {
	broker, err := open.URL(ctx, b.url)
	if err != nil {
		b.close()
		return nil, err
	}
	bin, err := o.commands(ctx)
	if err != nil {
		err = errors.Join(err, broker.Close(ctx))
		b.close()
		return nil, err
	}
	return &processStage{broker: broker, o: o, bin: bin, backend: b}, nil
}

// Build compiles the processes into a new directory, for Options.Bin.
func Build(ctx context.Context) (string, error) { return build(ctx, "") }

// build compiles the processes of the module in a directory, by default of this one.
func build(ctx context.Context, tree string) (string, error) {
	dir, err := os.MkdirTemp("", "ferry-torture-bin-")
	if err != nil {
		return "", err
	}
	const commands = "github.com/ferrymq/ferry/test/torture/cmd/"
	build := exec.CommandContext(ctx, "go", "build", "-o", dir, commands+consumer, commands+producer, commands+app)
	if tree == "" { // older commits have none
		build.Args = append(build.Args, commands+gatewayCommand)
	}
	build.Dir = tree
	if tree != "" { // a bug that is planted here is none of its own
		build.Env = append(os.Environ(), "GOFLAGS=")
	}
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("building the processes: %w\n%s", err, out), os.RemoveAll(dir))
	}
	return dir, nil
}

// Upgrades says whether a fault needs the processes of an older commit.
func (f Fault) Upgrades() bool { return f.Setup == setupOlder }

// OlderCommit is the one that an upgrade begins with if nobody says otherwise: the last before the start of a handler
// was recorded with its delivery, which changed what every broker stores.
const OlderCommit = "6043f50"

// BuildOlder compiles the processes of a commit into a new directory, for Options.Older.
func BuildOlder(ctx context.Context, commit string) (dir string, err error) {
	tree, err := os.MkdirTemp("", "ferry-torture-older-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tree)) }()
	archive := exec.CommandContext(ctx, "sh", "-c",
		`git -C "$(git rev-parse --show-toplevel)" archive "$1" | tar -x -C "$2"`, "sh", commit, tree)
	if out, err := archive.CombinedOutput(); err != nil {
		return "", fmt.Errorf("commit %s: %w\n%s", commit, err, out)
	}
	if _, err := os.Stat(tree + "/go.mod"); err != nil {
		return "", fmt.Errorf("commit %s is not here; it takes a clone with its history: %w", commit, err)
	}
	return build(ctx, tree)
}

// programs is where the processes of a life are: those of the first are the older ones, if there are any.
func (o Options) programs(bin, name string) string {
	if o.Fault.Upgrades() && strings.HasSuffix(name, ".1") {
		return o.Older
	}
	return bin
}

// commands returns the directory of the built commands.
func (o Options) commands(ctx context.Context) (string, error) {
	if o.Bin != "" {
		return o.Bin, nil
	}
	return Build(ctx)
}

// discard removes a directory that commands made.
func (o Options) discard(bin string) error {
	if o.Bin != "" {
		return nil
	}
	return os.RemoveAll(bin)
}

func (s *processStage) look(_ context.Context, f func(driver.Driver) error) error {
	return f(s.broker.Driver())
}

func (s *processStage) servers() servers { return s.backend.servers }

func (s *processStage) drain(ctx context.Context, c *cast) error {
	return s.o.drainThrough(ctx, s.broker.Driver(), c)
}

func (s *processStage) start(_ context.Context, role string, seed uint64, name string) (process, error) {
	p, err := s.o.spawn(s.o.programs(s.bin, name), s.backend.url, s.backend.behind, role, name, s.o.settings(role, seed))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes = append(living(s.processes), p)
	return p, nil
}

func (s *processStage) close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.processes {
		errs = append(errs, p.kill())
	}
	errs = append(errs, s.broker.Close(ctx), s.o.discard(s.bin))
	s.backend.close()
	return errors.Join(errs...)
}

package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/test/torture/proxy"
	"github.com/ferrymq/ferry/test/torture/schedule"
	"github.com/ferrymq/ferry/test/torture/workload"
)

// processStage runs real processes against a broker that runs beside them, each through a proxy of its own.
type processStage struct {
	broker *ferry.Broker // for looking
	o      Options
	bin    string // directory of the built commands
	url    string

	mu        sync.Mutex
	processes []*spawned
}

// openProcesses builds the commands and connects to a broker by its URL.
func openProcesses(ctx context.Context, o Options) (stage, error) {
	broker, err := open.URL(ctx, o.Broker)
	if err != nil {
		return nil, err
	}
	bin, err := buildCommands(ctx)
	if err != nil {
		return nil, errors.Join(err, broker.Close(ctx))
	}
	return &processStage{broker: broker, o: o, bin: bin, url: o.Broker}, nil
}

// buildCommands compiles producer and consumer into a new directory.
func buildCommands(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "ferry-torture-bin-")
	if err != nil {
		return "", err
	}
	const commands = "github.com/ferrymq/ferry/test/torture/cmd/"
	build := exec.CommandContext(ctx, "go", "build", "-o", dir, commands+consumer, commands+producer)
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("building the processes: %w\n%s", err, out), os.RemoveAll(dir))
	}
	return dir, nil
}

func (s *processStage) driver() driver.Driver { return s.broker.Driver() }

func (s *processStage) actions() schedule.Actions {
	all := schedule.Actions{
		string(proxy.Cut):          {Roles: both, Lasting: true, Help: "its connections are reset, new ones too"},
		string(proxy.BlackHole):    {Roles: both, Lasting: true, Help: "nothing passes, and nobody is told"},
		string(proxy.Latency):      {Roles: both, Lasting: true, Value: "a duration", Help: "everything is delayed, each way"},
		string(proxy.LoseRequests): {Roles: both, Lasting: true, Help: "nothing passes to the server"},
		string(proxy.LoseReplies):  {Roles: both, Lasting: true, Help: "nothing passes from the server"},
		string(proxy.ResetReply):   {Roles: both, Lasting: true, Help: "connections are reset in the middle of a reply"},
	}
	maps.Copy(all, habits())
	return all
}

// spawned is one real process and the proxy in front of it.
type spawned struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	proxy *proxy.Proxy // nil for a broker without an address

	over   chan struct{}
	mu     sync.Mutex
	ended  bool // by us
	result error
}

func (s *processStage) start(_ context.Context, role string, seed uint64, name string) (process, error) {
	p := &spawned{over: make(chan struct{})}
	address, err := p.through(s.url)
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(s.o.settings(role, seed))
	if err != nil {
		return nil, err
	}
	// Not CommandContext: the process outlives its context, until it is told.
	p.cmd = exec.Command(filepath.Join(s.bin, role), "-url", address, "-dir", s.o.Dir, "-name", name, "-settings", string(settings))
	var stderr strings.Builder
	p.cmd.Stderr = &stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		err := p.cmd.Wait()
		p.mu.Lock()
		if err != nil && !p.ended {
			p.result = fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
		}
		p.mu.Unlock()
		close(p.over)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes = append(s.processes, p)
	return p, nil
}

// through puts a proxy in front of the broker's address.
func (p *spawned) through(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address, err
	}
	if p.proxy, err = proxy.Listen(u.Host); err != nil {
		return "", err
	}
	u.Host = p.proxy.Addr()
	return u.String(), nil
}

func (p *spawned) signal(s syscall.Signal, ends bool) error {
	p.mu.Lock()
	p.ended = p.ended || ends && s == syscall.SIGKILL
	p.mu.Unlock()
	err := p.cmd.Process.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func (p *spawned) kill() error {
	err := p.signal(syscall.SIGKILL, true)
	<-p.over
	return err
}

func (p *spawned) terminate() error { return p.signal(syscall.SIGTERM, true) }

func (p *spawned) begin(action, value string) error {
	if action == "stop" {
		return p.signal(syscall.SIGSTOP, false)
	}
	known, err := (&workload.Habits{}).Begin(action, value) // refuses a bad value here, where it is seen
	switch {
	case err != nil:
		return err
	case known:
		return p.tell("begin " + action + " " + value)
	case p.proxy == nil:
		return fmt.Errorf("%s: the broker has no address to put a proxy in front of", action)
	}
	var latency time.Duration
	if value != "" {
		if latency, err = time.ParseDuration(value); err != nil {
			return fmt.Errorf("%s with %q: it takes a duration", action, value)
		}
	}
	p.proxy.Set(proxy.Fault(action), latency)
	return nil
}

func (p *spawned) end(action string) error {
	if action == "stop" {
		return p.signal(syscall.SIGCONT, false)
	}
	if known, _ := (&workload.Habits{}).End(action); known {
		return p.tell("end " + action)
	}
	if p.proxy != nil {
		p.proxy.Heal()
	}
	return nil
}

// tell writes a command to its stdin. One that is over does not listen any more.
func (p *spawned) tell(line string) error {
	_, err := io.WriteString(p.stdin, line+"\n")
	select {
	case <-p.over:
		return nil
	default:
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func (p *spawned) done() <-chan struct{} { return p.over }

func (p *spawned) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result
}

func (s *processStage) close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.processes {
		errs = append(errs, p.kill())
		if p.proxy != nil {
			errs = append(errs, p.proxy.Close())
		}
	}
	return errors.Join(append(errs, s.broker.Close(ctx), os.RemoveAll(s.bin))...)
}

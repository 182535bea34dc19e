package rig

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ferrymq/ferry/test/torture/proxy"
	"github.com/ferrymq/ferry/test/torture/victim"
	"github.com/ferrymq/ferry/test/torture/workload"
)

// spawned is one real process and the proxies in front of it.
type spawned struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	proxies []*proxy.Proxy // none for a broker without an address
	limits  limits

	over   chan struct{}
	mu     sync.Mutex
	killed bool
	ending bool // it was told to end
	result error
}

// spawn starts the command of a role. Behind are the servers of a set; a single one is found in the URL.
func (o Options) spawn(bin, address string, behind []string, role, name string, settings workload.Settings) (*spawned,
	error) {
	p := &spawned{over: make(chan struct{})}
	address, via, err := p.detour(address, behind)
	if err != nil {
		return nil, errors.Join(err, p.closeProxies())
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, errors.Join(err, p.closeProxies())
	}
	// Not CommandContext: the process outlives its context, until it is told.
	p.cmd = exec.Command(filepath.Join(bin, role), "-url", address, "-via", via, "-dir", o.Dir, "-name", name, "-settings",
		string(text))
	if o.Fault.Setup == setupLittleMemory {
		p.cmd.Env = append(os.Environ(), fmt.Sprintf("GOMEMLIMIT=%d", littleMemory))
	}
	var stderr strings.Builder
	p.cmd.Stderr = &stderr
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, p.closeProxies())
	}
	taken := func() int64 { return 0 }
	if o.Fault.Setup == setupLittleMemory {
		taken = followMemory(p.cmd.Process.Pid)
	}
	go func() {
		err := p.cmd.Wait()
		most := taken()
		p.mu.Lock()
		if err != nil && !p.killed && !p.early() {
			p.result = fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
		}
		p.result = errors.Join(p.result, checkMemory(most), p.closeProxies()) // lives are many, and each has its own
		p.mu.Unlock()
		close(p.over)
	}()
	return p, nil
}

// detour puts proxies in front of the servers: of a set by a list for the process, of a single one in its URL.
func (p *spawned) detour(address string, behind []string) (through, via string, err error) {
	if len(behind) > 0 {
		list := map[string]string{}
		for _, server := range behind {
			if list[server], err = p.through(server); err != nil {
				return "", "", err
			}
		}
		text, err := json.Marshal(list)
		return address, string(text), err
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || strings.Contains(u.Host, ",") {
		return address, "", err
	}
	u.Host, err = p.through(u.Host)
	return u.String(), "", err
}

// through puts a proxy in front of one server.
func (p *spawned) through(server string) (string, error) {
	x, err := proxy.Listen(server)
	if err != nil {
		return "", err
	}
	p.proxies = append(p.proxies, x)
	return x.Addr(), nil
}

func (p *spawned) closeProxies() error {
	var errs []error
	for _, x := range p.proxies {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}

func (p *spawned) signal(s syscall.Signal) error {
	err := p.cmd.Process.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// early says that SIGTERM came before the process listened for it: it has done nothing yet.
func (p *spawned) early() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGTERM
}

func (p *spawned) kill() error {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	err := p.signal(syscall.SIGKILL)
	<-p.over
	return err
}

func (p *spawned) terminate() error {
	p.mu.Lock()
	p.ending = true
	p.mu.Unlock()
	return p.signal(syscall.SIGTERM)
}

func (p *spawned) begin(action, value string) error {
	if action == "stop" {
		return p.signal(syscall.SIGSTOP)
	}
	if known, err := p.limits.begin(action, value, func() int { return p.cmd.Process.Pid }, p.signal); known {
		return err
	}
	known, err := takes(action, value)
	switch {
	case err != nil:
		return err
	case known:
		return p.tell("begin " + action + " " + cmp.Or(value, "now"))
	case len(p.proxies) == 0:
		return fmt.Errorf("%s: the broker has no address to put a proxy in front of", action)
	}
	var latency time.Duration
	if value != "" {
		if latency, err = time.ParseDuration(value); err != nil {
			return fmt.Errorf("%s with %q: it takes a duration", action, value)
		}
	}
	for _, x := range p.proxies {
		x.Set(proxy.Fault(action), latency)
	}
	return nil
}

// takes says whether a process carries an action out itself, and refuses a bad value here, where it is seen.
func takes(action, value string) (bool, error) {
	if known, err := (&workload.Habits{}).Begin(action, value); known {
		return true, err
	}
	if _, ok := seams()[action]; !ok {
		return false, nil
	}
	return victim.NewHarm().Begin(action, value)
}

func (p *spawned) end(action string) error {
	if action == "stop" {
		return p.signal(syscall.SIGCONT)
	}
	if known, err := p.limits.end(action); known {
		return err
	}
	if known, _ := takes(action, "0"); known {
		return p.tell("end " + action)
	}
	for _, x := range p.proxies {
		x.Heal()
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

// drain tells it to end when it has nothing left to do.
func (p *spawned) drain() error {
	p.mu.Lock()
	ending := p.ending
	p.mu.Unlock()
	if ending {
		return errEnding
	}
	return p.tell("drain")
}

func (p *spawned) done() <-chan struct{} { return p.over }

// living leaves out those that are over: a soak has thousands of lives.
func living(all []*spawned) []*spawned {
	return slices.DeleteFunc(all, func(p *spawned) bool {
		select {
		case <-p.over:
			return true
		default:
			return false
		}
	})
}

func (p *spawned) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result
}

package state

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/proxy"
	"github.com/ferrymq/ferry/test/torture/victim"
)

// Ways to harm a process.
const (
	killed  = "kill"
	stopped = "stop" // in order
	paused  = "pause"
	cutOff  = string(proxy.Cut)
	held    = string(proxy.BlackHole) // what it sends arrives when it is healed
	slowed  = string(proxy.Latency)

	restarted = "restart" // of the server
)

// actor is a process that can be harmed.
type actor interface {
	name() string
	// kill ends it without a word, and returns when it is over.
	kill()
	// stop ends it in order.
	stop()
	pause()
	resume()
	// cut breaks its connections, or holds back what passes them, or delays it.
	cut(how string, by time.Duration)
	heal()
	gone() bool
}

// process is a real one. It is this program once more, with an order in its environment.
type process struct {
	order order
	cmd   *exec.Cmd
	proxy *proxy.Proxy // nil where there is no server
	over  chan struct{}
}

// childEnv has the order of a process.
const childEnv = "FERRY_TORTURE_STATE"

func startProcess(o order, record func(Event)) (*process, error) {
	p := &process{over: make(chan struct{})}
	if address := addressOf(o.URL); address != "" {
		var err error
		if p.proxy, err = proxy.Listen(address); err != nil {
			return nil, err
		}
		o.Via = p.proxy.Addr()
	}
	p.order = o
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(os.Args[0], "-test.run=^$") // which the command ignores
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, p.closeProxy())
	}
	go func() {
		defer close(p.over)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e Event
			if json.Unmarshal(lines.Bytes(), &e) == nil { // else it was killed in the middle of it
				record(e)
			}
		}
		_ = p.cmd.Wait() // it was killed, or has said on stderr what it did not like
		_ = p.closeProxy()
	}()
	return p, nil
}

func (p *process) closeProxy() error {
	if p.proxy == nil {
		return nil
	}
	return p.proxy.Close()
}

func (p *process) name() string { return p.order.Name }

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be over
	<-p.over
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.over
}

func (p *process) pause()  { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

func (p *process) cut(how string, by time.Duration) { p.proxy.Set(proxy.Fault(how), by) }

func (p *process) heal() { p.proxy.Heal() }

func (p *process) gone() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// local is a process inside the harness: goroutines with a driver that can be harmed. Its timers go on while it is
// paused.
type local struct {
	order  order
	broker *far
	harm   *victim.Harm
	end    context.CancelFunc
	over   chan struct{}
	once   sync.Once
}

// travelTime is how far off a broker in memory is at most, so that kills come in the middle of what is done.
const travelTime = 10 * time.Millisecond

func startLocal(o order, shared driver.Driver, record func(Event)) (*local, error) {
	l := &local{order: o, harm: victim.NewHarm(), over: make(chan struct{})}
	l.broker = &far{Driver: shared, most: travelTime, random: rand.New(rand.NewPCG(o.Seed, 1))}
	b, err := ferry.New(victim.Wrap(l.broker, history.Discard(o.Name), l.harm, true), ferry.Options{Logger: quiet()})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.end = cancel
	go func() {
		defer close(l.over)
		if err := newMember(o, b, record).run(ctx); err != nil && !errors.Is(err, ferry.ErrClosed) {
			fmt.Fprintln(os.Stderr, o.Name, err)
		}
	}()
	return l, nil
}

func (l *local) name() string { return l.order.Name }

func (l *local) kill() {
	l.once.Do(func() {
		l.broker.dead.Store(true)
		l.harm.Kill()
		l.harm.Bury()
	})
	l.end()
	<-l.over
}

func (l *local) stop() {
	l.end()
	<-l.over
}

func (l *local) pause()                    { _, _ = l.harm.Begin("stop", "") }
func (l *local) resume()                   { _, _ = l.harm.End("stop") }
func (l *local) cut(string, time.Duration) { _, _ = l.harm.Begin("cut", "") }
func (l *local) heal()                     { _, _ = l.harm.End("cut") }

func (l *local) gone() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// life numbers the lives of a process: "writer-2.3" is the third of the second.
func life(role string, number, n int) string { return fmt.Sprintf("%s-%d.%d", role, number+1, n) }

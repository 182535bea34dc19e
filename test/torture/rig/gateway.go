package rig

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

// gatewayCommand is the program of a gateway.
const gatewayCommand = "gateway"

// gatewayActions are what a gateway suffers. The broker behind it is left alone: it has a row of its own.
func gatewayActions() schedule.Actions {
	return schedule.Actions{
		history.ServerCrash: {Roles: []string{server}, Lasting: true,
			Help: "kill -9 of the gateway, then started again at its address"},
		"freeze": {Roles: []string{server}, Lasting: true, Help: "SIGSTOP, then SIGCONT"},
	}
}

// gatewayFaults are those of a gateway.
func gatewayFaults() []Fault {
	return []Fault{
		{Name: "restart-gateway", Help: "kill -9 of the gateway", Setup: setupGateway, Least: 10 * time.Second,
			Schedule: "every 1500ms-2500ms from 700ms crash server any for 300ms"},
		{Name: "mix-gateway", Help: "the gateway and its clients at once", Setup: setupGateway, Least: 15 * time.Second,
			Schedule: `
			every 3s-5s crash server any for 300ms; every 4s-6s from 2s freeze server any for 500ms
			every 2s-3s kill consumer any; every 2s-3s kill producer any; every 1s-2s term consumer any
			every 1s-2s reset-reply producer any for 100ms; every 1s fail consumer all with 0.1 for 1s`},
	}
}

// behind starts the broker of a gateway, which keeps its files in dir.
type behind func(dir string) (url string, stop func(), err error)

// redisBehind is a server of its own: it lives on when the gateway is killed.
func redisBehind(dir string) (url string, stop func(), err error) {
	redis, err := redistest.StartSingle(dir, redistest.Options{AOF: "everysec"})
	if err != nil {
		return "", nil, err
	}
	return redis.URL(), redis.Close, nil
}

// diskBehind is in the process of the gateway: a kill ends both.
func diskBehind(dir string) (url string, stop func(), err error) {
	return "disk://" + filepath.Join(dir, "store"), func() {}, nil
}

// openGateway starts a gateway in front of a broker.
func openGateway(start behind) func(ctx context.Context, o Options) (stage, error) {
	return func(ctx context.Context, o Options) (stage, error) {
		dir, err := os.MkdirTemp("", "ferry-torture-gateway-")
		if err != nil {
			return nil, err
		}
		url, stop, err := start(dir)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		clean := func() {
			stop()
			_ = os.RemoveAll(dir)
		}
		bin, err := o.commands(ctx)
		if err != nil {
			clean()
			return nil, err
		}
		g := &gatewayServer{bin: filepath.Join(bin, gatewayCommand), url: url, address: "127.0.0.1:0"}
		if err := g.start(); err != nil {
			clean()
			return nil, errors.Join(err, o.discard(bin))
		}
		built := o
		built.Bin = bin
		return openProcesses(ctx, built, backend{url: "ferry://" + g.address, servers: g, close: func() {
			g.kill()
			clean()
			_ = o.discard(bin)
		}})
	}
}

// gatewayServer is one process, at one address over all its lives.
type gatewayServer struct {
	bin, url, address string
	cmd               *exec.Cmd
}

// start returns when it answers.
func (g *gatewayServer) start() error {
	g.cmd = exec.Command(g.bin, "-url", g.url, "-listen", g.address)
	var stderr strings.Builder
	g.cmd.Stderr = &stderr
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := g.cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		g.kill()
		return fmt.Errorf("the gateway did not start: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	g.address = strings.TrimSpace(line)
	return nil
}

func (g *gatewayServer) kill() {
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
}

func (g *gatewayServer) begin(step schedule.Step, _ int) (string, error) {
	switch step.Action {
	case history.ServerCrash:
		g.kill()
		return "", nil
	case "freeze":
		return "", g.signal(syscall.SIGSTOP)
	}
	return "", fmt.Errorf("a gateway cannot %s", step.Action)
}

func (g *gatewayServer) end(_ context.Context, step schedule.Step, _ int) error {
	if step.Action == history.ServerCrash {
		return g.start()
	}
	return g.signal(syscall.SIGCONT)
}

// signal tells the process, unless another fault has ended it.
func (g *gatewayServer) signal(s syscall.Signal) error {
	if err := g.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

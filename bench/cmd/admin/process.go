package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/bench/system/redisserver"
	"github.com/ferrymq/ferry/open"
)

// secondPage returns the address of the page after the first one.
func secondPage(ctx context.Context, first string) (string, error) {
	text, err := get(ctx, first)
	if err != nil {
		return "", err
	}
	var page api.MessagePage
	if err := json.Unmarshal(text, &page); err != nil {
		return "", err
	}
	return first + "&cursor=" + url.QueryEscape(page.Next), nil
}

// build makes the command, and returns where it is.
func build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "ferry")
	c := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/ferry")
	c.Dir, c.Stderr = "..", os.Stderr
	return path, c.Run()
}

// process is a server in a process of its own.
type process struct {
	*exec.Cmd
	url   string
	ready time.Duration // from its start until /readyz says so
}

// startServer runs ferry serve on a broker until it is ready.
func startServer(ctx context.Context, command, broker string) (*process, error) {
	p := &process{Cmd: exec.CommandContext(ctx, command, "serve", "--listen", "127.0.0.1:0", "--broker", broker)}
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := p.Start(); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(out); p.url == "" && lines.Scan(); {
		p.url = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text())
	}
	if p.url == "" {
		return nil, errors.Join(errors.New("the server does not run"), p.stop())
	}
	for ctx.Err() == nil {
		if _, err := get(ctx, p.url+"/readyz"); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	p.ready = time.Since(begin)
	return p, ctx.Err()
}

func (p *process) stop() error {
	_ = p.Process.Kill()
	_ = p.Wait() // that it was killed is no news
	return nil
}

// memory is what the process has in memory, in MB.
func (p *process) memory() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		return 0, errors.New("the system does not tell the memory of a process")
	}
	kb, err := strconv.ParseFloat(string(found[1]), 64)
	return kb / 1000, err
}

// processor is the time that the process has computed so far.
func (p *process) processor() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, errors.New("the system does not tell the time of a process")
	}
	user, err := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err, err2) // a tick is 10 ms
}

func measureServer(ctx context.Context, s sizes) (rows []row, err error) {
	dir, err := os.MkdirTemp("", "bench-admin-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	command, err := build(ctx, dir)
	if err != nil {
		return nil, err
	}
	starts, err := measureStarts(ctx, command, filepath.Join(dir, "store"))
	if err != nil {
		return nil, err
	}
	rows = append(rows, starts)
	redis, err := redisserver.Start()
	if err != nil {
		return rows, err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	token, err := makeToken(ctx, redis.URL())
	if err != nil {
		return rows, err
	}
	p, err := startServer(ctx, command, redis.URL())
	if err != nil {
		return rows, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	idle, err := measureIdle(p, s.watch)
	if err != nil {
		return rows, err
	}
	viewers, err := measureViewers(ctx, p, token, s)
	return append(rows, idle, viewers), err
}

// measureStarts starts servers on a directory that is empty first.
func measureStarts(ctx context.Context, command, dir string) (row, error) {
	var all []time.Duration
	for i := range 7 {
		p, err := startServer(ctx, command, "disk://"+dir+strconv.Itoa(i))
		if err != nil {
			return row{}, err
		}
		all = append(all, p.ready)
		_ = p.stop()
	}
	t := timesOf(all)
	return row{"start to ready on an empty directory, 7 starts", fmt.Sprintf("median %v, slowest %v",
		t.median.Round(time.Millisecond), t.p99.Round(time.Millisecond)), "≤ 300 ms"}, nil
}

func measureIdle(p *process, rest time.Duration) (row, error) {
	before, err := p.processor()
	if err != nil {
		return row{}, err
	}
	time.Sleep(rest)
	after, err := p.processor()
	return row{fmt.Sprintf("processor time of an idle server on Redis in %v", rest),
		fmt.Sprintf("%v, %.2f %% of a core", after-before, 100*float64(after-before)/float64(rest)), "≤ 1 %"}, err
}

// makeToken makes a token that sees everything.
func makeToken(ctx context.Context, broker string) (string, error) {
	b, err := open.URL(ctx, broker)
	if err != nil {
		return "", err
	}
	_, secret, err := auth.NewTokens(b).Create(ctx, auth.TokenRequest{Name: "bench", Scopes: auth.Scopes()})
	return secret.Reveal(), errors.Join(err, b.Close(ctx))
}

// measureViewers opens streams of live figures and looks at the memory of the server.
func measureViewers(ctx context.Context, p *process, token string, s sizes) (row, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var opened errgroup.Group
	opened.SetLimit(16)
	for range s.viewers {
		opened.Go(func() error { return view(watching, p.url+api.Base+"/figures/events", token) })
	}
	if err := opened.Wait(); err != nil {
		return row{}, err
	}
	time.Sleep(s.watch / 3)
	first, err := p.memory()
	if err != nil {
		return row{}, err
	}
	time.Sleep(s.watch)
	last, err := p.memory()
	return row{fmt.Sprintf("memory of a server with %d viewers, and %v later", s.viewers, s.watch),
		fmt.Sprintf("%.0f MB, %.0f MB", first, last), "≤ 150 MB, flat"}, err
}

// errBusy says that viewers come faster than the server lets one token ask.
var errBusy = errors.New("the server is asked too often")

// view opens a stream, which is read until ctx ends.
func view(ctx context.Context, address, token string) error {
	opened := make(chan error, 1)
	for {
		go watch(ctx, address, token, opened)
		err := <-opened
		if !errors.Is(err, errBusy) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// watch reads a stream until ctx ends, and tells whether it was opened.
func watch(ctx context.Context, address, token string, opened chan<- error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		opened <- err
		return
	}
	q.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		opened <- err
		return
	}
	defer func() { _ = res.Body.Close() }()
	switch res.StatusCode {
	case http.StatusOK:
		opened <- nil
		_, _ = io.Copy(io.Discard, res.Body)
	case http.StatusTooManyRequests:
		opened <- errBusy
	default:
		opened <- fmt.Errorf("a viewer was answered %s", res.Status)
	}
}

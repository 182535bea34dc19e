package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/internal/netns"
)

// spec is what a server is started with, at first and after each fault.
type spec struct {
	dir       string
	options   Options
	authority *authority // nil: no TLS
	sentinel  bool       // watches others instead of keeping data
	extra     []string   // configuration of its role in a set
}

// ownIP stands for the server's own address in spec.extra.
const ownIP = "$IP"

const (
	configFile = "redis.conf"
	logFile    = "redis.log"
)

var errPortTaken = errors.New("the port is taken")

// launch starts a server on a free port. Another program may take the port first: then it tries others.
func launch(sp spec) (*Server, error) {
	v, binary, err := findVersion(sp.options.Version)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(sp.dir, 0o700); err != nil {
		return nil, err
	}
	var place *netns.Host
	if n := sp.options.Network; n != nil {
		if place, err = n.Add(); err != nil {
			return nil, err
		}
	}
	for range 5 {
		s := &Server{spec: sp, version: v, binary: binary, host: place}
		if s.port, err = reservePort(); err != nil {
			return nil, err
		}
		if err = s.configure(); err == nil {
			err = s.start()
		}
		if err == nil {
			return s, nil
		}
		s.port.release()
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, err
}

// configure writes the files. A sentinel, and a replica after a fail-over, write their own changes into them later.
func (s *Server) configure() error {
	o := s.spec.options
	lines := o.network(s.spec.dir, s.host, s.port.number, s.spec.authority)
	if !s.spec.sentinel {
		lines = append(lines, o.dataNode(s.version)...)
	}
	for _, line := range s.spec.extra {
		lines = append(lines, strings.ReplaceAll(line, ownIP, s.host.IP()))
	}
	if err := writeLines(filepath.Join(s.spec.dir, configFile), lines); err != nil {
		return err
	}
	if len(o.ACL) == 0 {
		return nil
	}
	return writeLines(filepath.Join(s.spec.dir, aclFile), o.aclLines())
}

func writeLines(file string, lines []string) error {
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// run starts the process.
func (s *Server) run() error {
	log, err := os.OpenFile(filepath.Join(s.spec.dir, logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own handle
	args := []string{configFile}
	if s.spec.sentinel {
		args = append(args, "--sentinel")
	}
	binary, args := s.host.Command(s.binary, args)
	p, err := startProcess(binary, args, s.spec.options.Clock.environment(), s.spec.dir, log)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	return nil
}

// start runs the process and waits until it answers. On failure nothing runs, and the error shows the log.
func (s *Server) start() error {
	if err := s.run(); err != nil {
		return err
	}
	p := s.current()
	if err := s.awaitAnswer(p); err != nil {
		p.kill()
		tail := s.logTail(15)
		if strings.Contains(tail, "Address already in use") {
			err = errors.Join(errPortTaken, err)
		}
		return fmt.Errorf("%s does not start: %w\nthe end of its log:\n%s", s, err, tail)
	}
	return nil
}

// awaitAnswer returns when this process answers: one that took its port might do so as well. A server that loads a
// large file has time for as long as it gets on.
func (s *Server) awaitAnswer(p *process) error {
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	return untilStalled(ctx, readyTimeout, s.loaded, func() error {
		if !p.running() {
			end(errors.New("the process has ended"))
		}
		if _, err := s.Command("PING"); err != nil { // LOADING is an error
			return err
		}
		pid, err := s.info("server", "process_id")
		if err == nil && pid != strconv.Itoa(p.pid()) {
			err = fmt.Errorf("process %s answers instead of %d", pid, p.pid())
		}
		return err
	})
}

// loaded is how much of its data a server that loads has; empty: it does not tell, or does not load.
func (s *Server) loaded() string {
	bytes, _ := s.info("persistence", "loading_loaded_bytes")
	return bytes
}

// logTail returns the last lines of the log, all of them when n is negative.
func (s *Server) logTail(n int) string {
	text, err := os.ReadFile(filepath.Join(s.spec.dir, logFile))
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(strings.TrimRight(string(text), "\n"), "\n")
	if n >= 0 && len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "")
}

// logTails returns the ends of several logs.
func logTails(servers []*Server) string {
	var b strings.Builder
	for _, s := range servers {
		fmt.Fprintf(&b, "%s, the end of its log:\n%s\n", s, s.logTail(15))
	}
	return b.String()
}

// readyTimeout is generous: many packages test at once, on few cores.
const readyTimeout = 2 * time.Minute

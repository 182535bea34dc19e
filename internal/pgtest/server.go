package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// readyTimeout is generous: many packages test at once, on few cores.
const readyTimeout = 60 * time.Second

// superuser is who may do everything on the server.
const superuser = "ferry"

// Server is a running server.
type Server struct {
	dir  string
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has been awaited
}

// Start starts a server in a new directory. Its programs are those of the newest version that is installed.
func Start() (*Server, error) {
	programs, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgtest") // not that of a test, which the server's user may not enter
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, done: make(chan struct{})}
	if err := s.start(programs); err != nil {
		err = fmt.Errorf("PostgreSQL does not start: %w\nthe end of its log:\n%s", err, s.log())
		s.remove()
		return nil, err
	}
	return s, nil
}

// find returns where initdb and postgres are.
func find() (string, error) {
	installed, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // of Debian, which has them in no path
	if err != nil {
		return "", err
	}
	slices.SortFunc(installed, func(a, b string) int { return version(a) - version(b) })
	if n := len(installed); n > 0 {
		return filepath.Dir(installed[n-1]), nil
	}
	if program, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(program), nil
	}
	return "", errors.New("PostgreSQL is not installed: run 'make setup'")
}

func version(program string) int {
	n, _ := strconv.Atoi(strings.Split(program, "/")[4])
	return n
}

// start makes the files of the server and runs it until it answers.
func (s *Server) start(programs string) error {
	owner, err := s.give()
	if err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	initdb := exec.Command(filepath.Join(programs, "initdb"), "-D", data, "-U", superuser, "-A", "trust", "-E", "UTF8",
		"--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = s.dir, owner
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own handle
	s.cmd = exec.Command(filepath.Join(programs, "postgres"), "-D", data, "-k", s.dir, "-h", "", "-c", "fsync=off", "-c",
		"max_connections=50")
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr, s.cmd.SysProcAttr = s.dir, log, log, owner
	if err := s.run(); err != nil {
		return err
	}
	return s.awaitAnswer()
}

// give makes the directory that of an unprivileged user, as whom the server then runs.
func (s *Server) give() (*syscall.SysProcAttr, error) {
	attr := endWithParent()
	if os.Geteuid() != 0 {
		return attr, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, os.Chown(s.dir, int(uid), int(gid))
}

// run starts the process. One goroutine starts and awaits it, locked to its thread: the kernel ends the child with the
// thread that started it.
func (s *Server) run() error {
	started := make(chan error)
	go func() {
		defer close(s.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // how it ended is in its log
		}
	}()
	return <-started
}

// awaitAnswer returns when the server takes connections, or has ended.
func (s *Server) awaitAnswer() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-s.done:
			return errors.New("the process has ended")
		case <-ctx.Done():
			s.end()
			return ctx.Err()
		}
		if strings.Contains(s.log(), "ready to accept connections") {
			if c, err := net.Dial("unix", filepath.Join(s.dir, ".s.PGSQL.5432")); err == nil {
				tick.Stop()
				return c.Close()
			}
		}
	}
}

// URL is the address of a database on the server, as drivers of PostgreSQL read it.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("host=%s user=%s dbname=%s sslmode=disable", s.dir, superuser, database)
}

// log returns the end of what the server wrote.
func (s *Server) log() string {
	const most = 4000
	text, _ := os.ReadFile(filepath.Join(s.dir, "log")) // an empty one says as much
	return string(text[max(0, len(text)-most):])
}

// Close ends the server and removes its files.
func (s *Server) Close() {
	s.end()
	s.remove()
}

// end stops the server at once; its processes do not outlive it.
func (s *Server) end() {
	_ = s.cmd.Process.Signal(syscall.SIGQUIT) // the only error is that it has ended
	<-s.done
}

func (s *Server) remove() { _ = os.RemoveAll(s.dir) }

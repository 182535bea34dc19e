package gatewayjson

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry/bench/system"
)

//go:embed publisher.py
var publisherScript string

// Python is the gateway with batches that the SDK for Python publishes, in a process of its own.
type Python struct{ System }

// Info describes it.
func (Python) Info() system.Info {
	return system.Info{
		Name: "ferry gateway, Python SDK", Version: "this checkout",
		Settings: "the same with batches by publish_many of sdk/python, in a child process that reads the bodies from a " +
			"pipe: arrays of JSON, one connection",
		Why: "what a program in Python gets",
	}
}

// Open serves an empty broker, and starts Python.
func (p Python) Open(ctx context.Context, o system.Options) (system.Session, error) {
	served, err := p.System.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &pythonSession{session: served.(*session)}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, served.Close())
	}
	return s, nil
}

// pythonSession has one process that publishes. Whoever asks it waits for the answer.
type pythonSession struct {
	*session
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	said    bytes.Buffer // when it failed
	turn    sync.Mutex
	batch   []byte
	stopped bool
}

// sdkSource is where the SDK is: in the directory above this one in which it is found first.
func sdkSource() (string, error) {
	here, err := os.Getwd()
	for dir := here; err == nil; dir = filepath.Dir(dir) {
		source := filepath.Join(dir, "sdk", "python", "src")
		if _, err := os.Stat(source); err == nil {
			return source, nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return "", errors.Join(fmt.Errorf("the SDK for Python is not above %s: run the bench in its checkout", here), err)
}

func (s *pythonSession) start() error {
	source, err := sdkSource()
	if err != nil {
		return err
	}
	s.cmd = exec.Command("python3", "-c", publisherScript, topic)
	s.cmd.Env = append(os.Environ(), "PYTHONPATH="+source, "PYTHONDONTWRITEBYTECODE=1", "FERRY_TOKEN=none",
		"FERRY_BROKER="+strings.TrimSuffix(s.base, "/v1"))
	s.cmd.Stderr = &s.said
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.out = bufio.NewReader(out)
	return s.cmd.Start()
}

func (s *pythonSession) Publisher() system.Publisher { return pythonPublisher{s} }

// Usage is the processor time of Python, which is no server: it is told all the same.
func (s *pythonSession) Usage() (system.Usage, error) {
	cpu, err := system.ProcessorTime(strconv.Itoa(s.cmd.Process.Pid))
	return system.Usage{CPU: cpu}, err
}

// publish hands a batch to Python, and waits until it is stored.
func (s *pythonSession) publish(ms []system.Message) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.batch = binary.BigEndian.AppendUint32(s.batch[:0], uint32(len(ms)))
	for _, m := range ms {
		s.batch = binary.BigEndian.AppendUint32(s.batch, uint32(len(m.Body)))
	}
	for _, m := range ms {
		s.batch = append(s.batch, m.Body...)
	}
	_, err := s.in.Write(s.batch)
	if err == nil {
		_, err = s.out.ReadSlice('\n')
	}
	if err != nil {
		return errors.Join(fmt.Errorf("Python did not publish: %w", err), s.stop())
	}
	return nil
}

// exitTimeout is how long Python has to end when it has no more to do.
const exitTimeout = 10 * time.Second

// stop ends Python. What it said is an error.
func (s *pythonSession) stop() error {
	if s.stopped {
		return nil
	}
	s.stopped = true
	_ = s.in.Close()
	late := time.AfterFunc(exitTimeout, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	err := s.cmd.Wait()
	if text := strings.TrimSpace(s.said.String()); text != "" {
		err = errors.Join(err, errors.New(text))
	}
	return err
}

func (s *pythonSession) Close() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return errors.Join(s.stop(), s.session.Close())
}

type pythonPublisher struct{ s *pythonSession }

func (p pythonPublisher) KeepsBodies() bool { return false }

func (p pythonPublisher) Publish(_ context.Context, m system.Message) error {
	return p.s.publish([]system.Message{m})
}

func (p pythonPublisher) PublishBatch(_ context.Context, ms []system.Message) error {
	return p.s.publish(ms)
}

func (p pythonPublisher) PublishAsync(context.Context, system.Message) error { return errNoAsync }
func (p pythonPublisher) Flush(context.Context) error                        { return nil }

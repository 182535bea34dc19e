package elasticmq

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/bench/system"
)

// version is the one that scripts/elasticmq.sh fetches.
const version = "1.7.1"

const (
	addrVariable = "FERRY_BENCH_ELASTICMQ"
	pidVariable  = "FERRY_BENCH_ELASTICMQ_PID"
	startTimeout = 2 * time.Minute // a JVM on a busy machine
	warming      = 5_000           // rounds of one message and one batch
)

// Prepare starts a server that this process and its children find, and warms it up: a JVM compiles what is used often.
func Prepare() (stop func() error, err error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	cmd, err := command(addr)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() error {
		_ = cmd.Process.Kill() // fails when it has ended already
		_ = cmd.Wait()         // how it ended does not matter
		return os.Unsetenv(addrVariable)
	}
	err = errors.Join(os.Setenv(addrVariable, addr), os.Setenv(pidVariable, strconv.Itoa(cmd.Process.Pid)))
	if err == nil {
		err = warmUp()
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// freeAddress is one that nobody listens on: the server cannot say which it took.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func command(addr string) (*exec.Cmd, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("no JDK is installed, run scripts/elasticmq.sh: %w", err)
	}
	home, err := filepath.Abs(filepath.Join("..", ".cache", "elasticmq", version))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(home, "complete")); err != nil {
		return nil, fmt.Errorf("no ElasticMQ %s here, run scripts/elasticmq.sh: %w", version, err)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	return exec.Command(java, "-Xmx2g", "-Drest-sqs.bind-hostname="+host, "-Drest-sqs.bind-port="+port,
		"-Drest-stats.enabled=false",
		"-cp", filepath.Join(home, "libs", "*"), "org.elasticmq.server.Main"), nil
}

// warmUp waits for the server, and sends messages through it.
func warmUp() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s, err := untilOpen(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p, ms := s.Publisher(), make([]system.Message, most)
	for i := range ms {
		ms[i].Body = make([]byte, 256)
	}
	for range warming {
		if err := errors.Join(p.Publish(ctx, ms[0]), p.PublishBatch(ctx, ms)); err != nil {
			return err
		}
	}
	c, err := s.Consume(ctx, system.ConsumeOptions{}, func([]byte) error { return nil })
	if err != nil {
		return err
	}
	return errors.Join(s.Settled(ctx), c.Stop(ctx))
}

// untilOpen opens a session as soon as the server answers.
func untilOpen(ctx context.Context) (system.Session, error) {
	for {
		s, err := System{}.Open(ctx, system.Options{})
		if err == nil {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("ElasticMQ does not answer: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

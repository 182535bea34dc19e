package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ferrymq/ferry/internal/netns"
)

// version of Apache Kafka that scripts/kafka.sh fetches.
const version = "4.3.1"

// readyTimeout is how long a cluster may take until it answers: a JVM on a busy machine.
const readyTimeout = 4 * time.Minute

// Broker is one Kafka process, or its files and its port while it is down. Its methods may be called concurrently.
type Broker struct {
	id   int
	dir  string
	java string
	libs string

	port, controller port
	host             *netns.Host // nil: the loopback address

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// Addr is the host and port, the same after each restart.
func (b *Broker) Addr() string { return b.at(b.port) }

func (b *Broker) at(p port) string { return net.JoinHostPort(b.host.IP(), strconv.Itoa(p.number)) }

// Kill ends the process with SIGKILL and returns when it is gone. It does nothing when the broker is down.
func (b *Broker) Kill() {
	b.mu.Lock()
	cmd, done := b.cmd, b.done
	b.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Kill() // fails when it has ended already
	<-done
}

// Restart starts the broker again on its port with its files, and returns when it listens. It kills it first.
func (b *Broker) Restart() error {
	b.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	if err := b.start(); err != nil {
		return err
	}
	return b.ready(ctx)
}

// Stop asks the process to end with SIGTERM, and returns when it is gone: what it led has been handed over.
func (b *Broker) Stop(ctx context.Context) error {
	if err := b.signal(syscall.SIGTERM); err != nil {
		return err
	}
	b.mu.Lock()
	done := b.done
	b.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the broker does not stop: %w", context.Cause(ctx))
	}
}

// Ended reports whether the process is gone, by itself perhaps: a broker that cannot open its files gives them up.
func (b *Broker) Ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// Freeze stops the process with SIGSTOP: connections stay open and nothing answers. Thaw lets it go on.
func (b *Broker) Freeze() error { return b.signal(syscall.SIGSTOP) }

// Thaw ends a Freeze.
func (b *Broker) Thaw() error { return b.signal(syscall.SIGCONT) }

func (b *Broker) signal(s syscall.Signal) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cmd.Process.Signal(s)
}

// PID is the number of the process, or of the last one while the broker is down.
func (b *Broker) PID() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cmd.Process.Pid
}

// Close ends the process for good and gives its ports back. The files stay.
func (b *Broker) Close() {
	b.Kill()
	b.port.release()
	b.controller.release()
}

// Log returns the end of what the broker has printed.
func (b *Broker) Log() string {
	data, _ := os.ReadFile(b.logFile())
	return string(data[max(0, len(data)-4000):])
}

func (b *Broker) logFile() string { return filepath.Join(b.dir, "broker.log") }

func (b *Broker) config() string { return filepath.Join(b.dir, "server.properties") }

func (b *Broker) command(class string, args ...string) *exec.Cmd {
	all := append([]string{"-Xmx512m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=WARN",
		"-cp", filepath.Join(b.libs, "*"), class}, args...)
	program, all := b.host.Command(b.java, all)
	cmd := exec.Command(program, all...)
	cmd.Dir = b.dir
	cmd.SysProcAttr = endWithParent()
	return cmd
}

// format writes the configuration and prepares the directory of the log.
func (b *Broker) format(cluster string, lines []string) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(b.config(), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	out, err := b.command("kafka.tools.StorageTool", "format", "-t", cluster, "-c", b.config()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("the directory of a broker could not be formatted: %w\n%s", err, out)
	}
	return nil
}

// start runs the process on a thread that stays, since the death signal is tied to the thread that forked.
func (b *Broker) start() error {
	log, err := os.OpenFile(b.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd, done, started := b.command("kafka.Kafka", b.config()), make(chan struct{}), make(chan error, 1)
	cmd.Stdout, cmd.Stderr = log, log
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended does not matter
		}
		_ = log.Close()
	}()
	if err := <-started; err != nil {
		return err
	}
	b.mu.Lock()
	b.cmd, b.done = cmd, done
	b.mu.Unlock()
	return nil
}

// ready waits until the broker accepts connections, or has ended.
func (b *Broker) ready(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.DialTimeout("tcp", b.Addr(), time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-b.done:
			return errors.New("the broker ended")
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// properties is the configuration of one broker of a set.
func properties(b *Broker, voters string, brokers int) []string {
	replicas := min(3, brokers)
	return []string{
		"process.roles=broker,controller",
		"node.id=" + strconv.Itoa(b.id),
		"controller.quorum.voters=" + voters,
		"controller.listener.names=CONTROLLER",
		fmt.Sprintf("listeners=PLAINTEXT://%s,CONTROLLER://%s", b.Addr(), b.at(b.controller)),
		"advertised.listeners=PLAINTEXT://" + b.Addr(),
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"inter.broker.listener.name=PLAINTEXT",
		"log.dirs=" + filepath.Join(b.dir, "data"),
		"auto.create.topics.enable=false",
		fmt.Sprintf("offsets.topic.replication.factor=%d", replicas),
		"offsets.topic.num.partitions=4",
		fmt.Sprintf("transaction.state.log.replication.factor=%d", replicas),
		fmt.Sprintf("transaction.state.log.min.isr=%d", max(1, replicas-1)),
		"transaction.state.log.num.partitions=4",
		fmt.Sprintf("min.insync.replicas=%d", max(1, replicas-1)),
		"group.initial.rebalance.delay.ms=0",
		"log.index.size.max.bytes=65536", // hundreds of small topics share the machine
		"num.network.threads=2", "num.io.threads=4",
		"log.cleaner.dedupe.buffer.size=4194304",
	}
}

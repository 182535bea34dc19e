// Package kafkaserver starts the Kafka that ours, the peers and the raw limit are measured on, and says what it used.
//
// Starting one takes many seconds, so that one serves a whole run: each session has topics of its own. Measurements are
// taken in processes of their own, which find it through the environment.
package kafkaserver

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// Settings say what the server runs with, for the report.
const Settings = "Apache Kafka 4.3.1 as a child process on loopback TCP, one broker (KRaft), heap 512 MiB, all else " +
	"default; one for all measurements, which have topics of their own"

const (
	addrVariable = "FERRY_BENCH_KAFKA"
	pidVariable  = "FERRY_BENCH_KAFKA_PID"
	dirVariable  = "FERRY_BENCH_KAFKA_DIR"
)

// Prepare starts a broker that this process and its children find.
func Prepare() (stop func() error, err error) {
	dir, err := os.MkdirTemp("", "bench-kafka-")
	if err != nil {
		return nil, err
	}
	c, err := kafkatest.Start(dir, 1)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return func() error {
			c.Close()
			return errors.Join(os.RemoveAll(dir), os.Unsetenv(addrVariable))
		}, errors.Join(os.Setenv(addrVariable, c.Brokers[0].Addr()), os.Setenv(pidVariable, strconv.Itoa(c.Brokers[0].PID())),
			os.Setenv(dirVariable, dir))
}

// Server is the broker, as one session sees it.
type Server struct {
	Addr string
	// Name is for topics and groups: no other session has it.
	Name string
}

// Find returns the broker that Prepare started.
func Find() (*Server, error) {
	addr := os.Getenv(addrVariable)
	if addr == "" {
		return nil, errors.New("no Kafka was started for this run: see scripts/kafka.sh")
	}
	return &Server{Addr: addr, Name: "b" + strings.ToLower(rand.Text()[:12])}, nil
}

// Usage is the processor time of the broker, and the size of the files of this session.
func (s *Server) Usage() (system.Usage, error) {
	cpu, err := system.ProcessorTime(os.Getenv(pidVariable))
	if err != nil {
		return system.Usage{}, err
	}
	u := system.Usage{CPU: cpu}
	err = filepath.WalkDir(os.Getenv(dirVariable), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.Contains(path, s.Name) {
			return nil // files come and go
		}
		if info, err := entry.Info(); err == nil && !strings.HasSuffix(path, "index") { // which are allocated in advance
			u.Bytes += info.Size()
		}
		return nil
	})
	return u, err
}

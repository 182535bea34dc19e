// Package kafkaserver starts the Kafka that ours, the peers and the raw limit are measured on, and says what it used.
//
// Starting one takes many seconds, so that one serves a whole run: each session has topics of its own. Measurements are
// taken in processes of their own, which find it through the environment.
package kafkaserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// Settings say what the server runs with, for the report.
const Settings = "Apache Kafka 4.3.1 as a child process on loopback TCP, one broker (KRaft), heap 512 MiB, all else " +
	"default; one for all measurements, which have topics of their own and delete them in the end"

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
			os.Setenv(dirVariable, dir), deleteSoon(c.Brokers[0].Addr()))
}

// removeWithin bounds what Remove does.
const removeWithin = 20 * time.Second

// goneWithin is how long Remove waits for files: a broker that has just started deletes none for half a minute.
const goneWithin = 2 * time.Second

// deleteSoon has the broker delete the files of a deleted topic soon, and not after a minute: they would be written
// back to the disk meanwhile, beside the next measurements. It looks for such files as often, so that less would cost
// it processor time that is measured.
func deleteSoon(addr string) error {
	value := "200" // ms
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Op, config.Value = "log.segment.delete.delay.ms", kmsg.IncrementalAlterConfigOpSet, &value
	all := kmsg.NewIncrementalAlterConfigsRequestResource()
	all.ResourceType, all.Configs = kmsg.ConfigResourceTypeBroker, append(all.Configs, config)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, all)
	return asked(addr, func(ctx context.Context, client *kgo.Client) error {
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.Resources[0].ErrorCode)
	})
}

func asked(addr string, ask func(ctx context.Context, client *kgo.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), removeWithin)
	defer cancel()
	return ask(ctx, client)
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

// Remove deletes the topics of this session and waits a while for their files to go, so that neither the disk fills
// while a run goes on, nor is what is left of one measurement written beside the next. What cannot be deleted in time,
// thousands of topics for example, spoils no figure: it is told to standard error and goes with the broker.
func (s *Server) Remove() error {
	if err := s.remove(); err != nil {
		fmt.Fprintln(os.Stderr, "kafka: topics of a finished measurement stay:", err)
	}
	return nil
}

func (s *Server) remove() error {
	return asked(s.Addr, func(ctx context.Context, client *kgo.Client) error {
		all := kmsg.NewPtrMetadataRequest()
		all.Topics = nil // all there are
		known, err := all.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.TimeoutMillis = int32(removeWithin / time.Millisecond)
		for _, t := range known.Topics {
			if t.Topic != nil && strings.Contains(*t.Topic, s.Name) {
				one := kmsg.NewDeleteTopicsRequestTopic()
				one.Topic = t.Topic
				req.Topics, req.TopicNames = append(req.Topics, one), append(req.TopicNames, *t.Topic)
			}
		}
		if len(req.Topics) == 0 {
			return nil
		}
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		for _, t := range resp.Topics {
			err = errors.Join(err, kerr.ErrorForCode(t.ErrorCode))
		}
		s.waitGone()
		return err
	})
}

// waitGone waits until no file of this session is left, but not for long: those that stay are deleted all the same.
func (s *Server) waitGone() {
	for until := time.Now().Add(goneWithin); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		left := false
		if err := s.files(func(string, os.DirEntry) { left = true }); err != nil || !left {
			return
		}
	}
}

// files calls visit for each file of this session. Files come and go.
func (s *Server) files(visit func(path string, entry os.DirEntry)) error {
	return filepath.WalkDir(os.Getenv(dirVariable), func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.Contains(path, s.Name) {
			visit(path, entry)
		}
		return nil
	})
}

// Usage is the processor time of the broker, and the size of the files of this session.
func (s *Server) Usage() (system.Usage, error) {
	cpu, err := system.ProcessorTime(os.Getenv(pidVariable))
	if err != nil {
		return system.Usage{}, err
	}
	u := system.Usage{CPU: cpu}
	err = s.files(func(path string, entry os.DirEntry) {
		if info, err := entry.Info(); err == nil && !strings.HasSuffix(path, "index") { // which are allocated in advance
			u.Bytes += info.Size()
		}
	})
	return u, err
}

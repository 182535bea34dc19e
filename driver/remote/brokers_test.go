package remote_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/driver/remote"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
)

// some are the cases in which the way to a broker matters. On memory all run. FERRY_REMOTE=all runs all on the others,
// too.
var some = regexp.MustCompile(
	"^(publish|lease|begin|stop|drain|emit|restart)/|^kv/(steps|waits|changes|fences|requests)")

// onServer judges stacks in real time. A namespace is a directory or a prefix, in which each case has a broker of its
// own.
func onServer(t *testing.T, namespace func(t testing.TB) string,
	open func(t testing.TB, namespace string) driver.Driver) drivertest.Harness {
	t.Helper()
	start := func(t testing.TB, namespace string) driver.Driver {
		return &named{stack: newStack(t, open(t, namespace)), namespace: namespace}
	}
	probe := open(t, namespace(t))
	h := drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return start(t, namespace(t)) },
		Reopen: func(t testing.TB, d driver.Driver) driver.Driver {
			t.Helper()
			if err := d.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			return start(t, d.(*named).namespace)
		},
		Beside: func(t testing.TB, d driver.Driver) driver.Driver { return d.(*named).node.connect(t) },
		PlantRaw: func(ctx context.Context, d driver.Driver, topic string, raw []byte) error {
			planter, can := d.(*named).backend.(interface {
				StoreRaw(ctx context.Context, topic string, raw []byte) error
			})
			if !can {
				return errors.New("only a broker in memory or on disk takes rubbish from here")
			}
			return planter.StoreRaw(ctx, topic, raw)
		},
		Want:  remotely(probe.Capabilities()),
		Only:  some,
		Steps: 500,
	}
	if os.Getenv("FERRY_REMOTE") == "all" {
		h.Only = nil
	}
	if err := probe.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return h
}

// named is a stack that can be opened again.
type named struct {
	*stack
	namespace string
}

func TestDriverOnDisk(t *testing.T) {
	drivertest.Run(t, onServer(t, func(t testing.TB) string { return t.TempDir() },
		func(t testing.TB, dir string) driver.Driver {
			d, err := disk.New(context.Background(), disk.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}))
}

func TestDriverOnRedis(t *testing.T) {
	server := redistest.Shared(t)
	h := onServer(t, prefix, func(t testing.TB, prefix string) driver.Driver {
		d, err := redis.New(context.Background(), redis.Options{URL: server.URL(), Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
	h.Except = plants
	drivertest.Run(t, h)
}

// On Redis Streams partitions have owners, so that what is held is taken away, and there is a log.
func TestDriverOnRedisStream(t *testing.T) {
	server := redistest.Shared(t)
	h := onServer(t, prefix, func(t testing.TB, prefix string) driver.Driver {
		d, err := redisstream.New(context.Background(), redisstream.Options{URL: server.URL(), Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
	h.Except = plants
	if h.Only != nil {
		h.Only = regexp.MustCompile("^(drain|log)/|^stop/close|^groups/one consumer|^order/key across")
	}
	drivertest.Run(t, h)
}

// On Kafka a lease is that of a partition, and a client's partitions are the gateway's until it is told that they go.
func TestDriverOnKafka(t *testing.T) {
	c := kafkatest.Shared(t)
	namespace := func(testing.TB) string { return "t" + rand.Text()[:10] + "." }
	h := onServer(t, namespace, func(t testing.TB, namespace string) driver.Driver {
		o := kafka.Options{Brokers: c.Addrs(), Namespace: namespace, Partitions: 3, InternalPartitions: 1}
		d, err := kafka.New(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
	h.Except = plants
	h.Late, h.Steps = time.Minute, 200 // a JVM is slow beside a race detector
	if h.Only != nil {
		h.Only = onKafka
	}
	drivertest.Run(t, h)
}

// onKafka are few cases: each makes topics, which takes a second.
var onKafka = regexp.MustCompile("^publish/(message arrives whole|bodies byte exact)|^lease/(stale settle " +
	"refused|tokens differ)$|" +
	"^drain/|^stop/close returns what is held$|^emit/")

func prefix(testing.TB) string { return "t" + rand.Text() }

// plants are cases about rubbish in a broker, which is put there behind the driver's back.
var plants = regexp.MustCompile("^invalid/|^log/range")

// Over TLS calls share a connection, by HTTP/2.
func TestDriverOverHTTP2(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return overHTTP2(t, newMemory(t)) },
		Want: remotely(newMemory(t).Capabilities()),
		PlantRaw: func(ctx context.Context, d driver.Driver, topic string, raw []byte) error {
			return d.(*stack).backend.(*memory.Driver).StoreRaw(ctx, topic, raw)
		},
		Only: regexp.MustCompile("^(publish|stop)/|^lease/extend|^kv/(waits|changes)"),
	})
}

// overHTTP2 puts a gateway that refuses HTTP/1.1 in front of a broker.
func overHTTP2(t testing.TB, backend driver.Driver) *stack {
	t.Helper()
	b, err := ferry.New(backend, ferry.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(b, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(as(operator(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			http.Error(w, "HTTP/2 only", http.StatusHTTPVersionNotSupported)
			return
		}
		g.ServeHTTP(w, r)
	})))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	d, err := remote.New(context.Background(), remote.Options{
		URL: strings.Replace(s.URL, "https", "ferrys", 1), TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	close(served)
	return &stack{Driver: d, node: &node{gateway: g, server: s.Config, served: served}, backend: backend}
}

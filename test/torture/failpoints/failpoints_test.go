// Package failpoints kills a process at every step of every operation, and looks at what is left. The steps are those
// of its traffic: before and after each request, and after each answer. The memory broker dies with its process; the
// disk broker is crashed before each change of a file by its own TestCrashes.
package failpoints

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
)

// TestMain is the victim too.
func TestMain(m *testing.M) {
	if text := os.Getenv(orderEnv); text != "" {
		fmt.Fprintln(os.Stderr, "the victim:", child(text))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const kafkaWithTransactions = "kafka-transactions"

// planted begins the names of operations that are wrong on purpose.
const planted = "planted "

func TestRedis(t *testing.T) {
	t.Parallel()
	sweep(t, order{Broker: "redis", Addr: redistest.Single(t, redistest.Options{}).Addr()})
}

func TestRedisStream(t *testing.T) {
	t.Parallel()
	sweep(t, order{Broker: "redisstream", Addr: redistest.Single(t, redistest.Options{}).Addr()})
}

// TestKafka takes ten seconds for a death, since what the victim held comes back when its session is over: in the short
// form it dies at a few steps only.
func TestKafka(t *testing.T) {
	t.Parallel()
	sweep(t, order{Broker: "kafka", Addr: kafkatest.Single(t).Addrs()[0]})
}

// TestKafkaWithTransactions is part of the long form only: brokers end a transaction of who died after 20 s.
func TestKafkaWithTransactions(t *testing.T) {
	if !everyStep() {
		t.Skip("FERRY_FAILPOINTS=all runs it")
	}
	t.Parallel()
	sweep(t, order{Broker: kafkaWithTransactions, Addr: kafkatest.Single(t).Addrs()[0]})
}

// TestTwoStepsAreFound: a retry that is an ack and then a publish loses the message when its process dies in between.
func TestTwoStepsAreFound(t *testing.T) {
	t.Parallel()
	o := order{Broker: "redis", Addr: redistest.Single(t, redistest.Options{}).Addr(), Operation: planted + "retry"}
	for o.Point = 1; ; o.Point++ {
		f, wrong := death(t, o)
		if wrong != "" {
			t.Logf("found at step %d: %s: %v", o.Point, wrong, f)
			return
		}
		if f.completed {
			t.Fatalf("not found in %d steps", o.Point)
		}
	}
}

// sweep lets a victim die at each step of each operation, until it comes to its end.
func sweep(t *testing.T, o order) {
	t.Helper()
	for name := range operations {
		if strings.HasPrefix(name, planted) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, deaths := o, 0
			o.Operation = name
			for o.Point = 1; ; o.Point += o.stride() {
				f, wrong := death(t, o)
				if wrong != "" {
					t.Errorf("killed at step %d: %s: %v", o.Point, wrong, f)
				}
				if deaths++; f.completed {
					break
				}
			}
			t.Logf("%d deaths, the last after %d steps", deaths, o.Point)
		})
	}
}

// everyStep says that the victim of every broker dies at every step.
func everyStep() bool { return os.Getenv("FERRY_FAILPOINTS") == "all" }

// stride is how far the next death is from this one.
func (o order) stride() int64 {
	if o.Broker != "kafka" || everyStep() {
		return 1
	}
	return 1 + 2*o.Point
}

// death is one: the message is prepared, the victim dies, somebody does again what was not answered, and everything is
// counted.
func death(t *testing.T, o order) (found, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	o.Namespace = "f" + strings.ToLower(rand.Text())
	d, err := open(ctx, o, new(trigger))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(d.Close(ctx), d.hangUp()); err != nil {
			t.Error(err)
		}
	}()
	w := &world{t: t, ctx: ctx, o: o, d: d, caps: d.Capabilities()}
	for _, name := range []string{topic, followUp} {
		w.ok(d.EnsureTopic(ctx, name, driver.TopicConfig{}), "EnsureTopic")
		w.ok(d.EnsureGroup(ctx, name, driver.DefaultGroup, driver.GroupOptions{}), "EnsureGroup")
	}
	op := operations[o.Operation]
	op.prepare(w)
	said := w.kill()
	if said == late {
		return death(t, o)
	}
	if op.repair != nil {
		op.repair(w)
	}
	f := w.find()
	f.completed = said == completed
	return f, op.wrong(w, f)
}

package state

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/internal/kafkatest"
)

func TestMain(m *testing.M) {
	if Child() {
		return
	}
	goredis.SetLogger(silent{})
	goleak.VerifyTestMain(kafkatest.Main(m))
}

// torture runs one fault of a broker, which must be clean.
func torture(t *testing.T, o Options) *Report {
	t.Helper()
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano())
	}
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Verdict())
	for _, p := range r.Problems[:min(len(r.Problems), 20)] {
		t.Error(p)
	}
	return r
}

// Everything is harmed in memory, in virtual time: 10,000 ticks, and an hour of leaders.
func TestMemory(t *testing.T) {
	t.Parallel()
	first, err := strconv.ParseUint(os.Getenv("FERRY_TORTURE_SEED"), 10, 64)
	if err != nil {
		first = 1
	}
	for _, o := range []Options{
		{Fault: "leader", Load: 5 * time.Minute},
		{Fault: "leader", Load: 2 * time.Minute, TTL: time.Second},
		{Fault: "schedules", Load: 255 * time.Second},
		{Fault: "values", Load: 30 * time.Second},
	} {
		o.Broker, o.Seed = "memory", first
		name := o.Fault
		if o.TTL > 0 {
			name += "-" + o.TTL.String()
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { torture(t, o) })
		})
	}
}

// A few seconds of each run on brokers with processes.
func TestLeaders(t *testing.T) {
	t.Parallel()
	onBrokers(t, Options{Fault: "leader", Load: 8 * time.Second, TTL: time.Second, Groups: 2})
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	onBrokers(t, Options{Fault: "schedules", Load: 8 * time.Second})
}

func TestValues(t *testing.T) {
	t.Parallel()
	onBrokers(t, Options{Fault: "values", Load: 5 * time.Second})
}

func onBrokers(t *testing.T, o Options) {
	for _, broker := range Brokers()[1:] {
		t.Run(broker, func(t *testing.T) {
			t.Parallel()
			o := o
			o.Broker = broker
			if broker == "kafka" {
				o.URL = "kafka://" + kafkatest.Shared(t).Addrs()[0] +
					"/?transactions=true&partitions=2&internal_partitions=2&namespace=" + strings.ToLower(o.Fault) + "."
			}
			torture(t, o)
		})
	}
}

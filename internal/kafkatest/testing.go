package kafkatest

import (
	"go.uber.org/goleak"
	"os"
	"sync"
	"testing"
)

// Single starts one broker, which ends with the test.
func Single(t testing.TB) *Cluster { t.Helper(); return start(t, 1) }

// Three starts three brokers, each a controller too, which end with the test.
func Three(t testing.TB) *Cluster { t.Helper(); return start(t, 3) }

func start(t testing.TB, n int) *Cluster {
	t.Helper()
	c, err := Start(t.TempDir(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.logs())
		}
		c.Close()
	})
	return c
}

// shared is the broker of this test process. It must outlive every test, so it can belong to none of them; Main owns
// it.
var shared struct {
	once    sync.Once
	owned   bool
	dir     string
	cluster *Cluster
	err     error
}

// Shared returns the one broker of the test process, started at first use. Tests isolate themselves by namespace and
// must not kill it. It needs Main.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	if !shared.owned {
		t.Fatal("kafkatest.Shared has no owner: the package's TestMain must say goleak.VerifyTestMain(kafkatest.Main(m))")
	}
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "kafkatest"); shared.err == nil {
			shared.cluster, shared.err = Start(shared.dir, 1)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// Runner runs the tests of a package and then ends the shared broker.
type Runner struct{ tests goleak.TestingM }

// Main makes Shared usable: goleak.VerifyTestMain takes its result in place of m, which may be that of another such
// Main.
func Main(m goleak.TestingM) Runner {
	shared.owned = true
	return Runner{m}
}

// Run runs the tests and returns their exit code, when nothing of the shared broker is left.
func (r Runner) Run() int {
	code := r.tests.Run()
	if shared.cluster != nil {
		shared.cluster.Close()
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
	return code
}

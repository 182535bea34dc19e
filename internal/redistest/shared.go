package redistest

import (
	"context"
	"os"
	"sync"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// shared is the server of this test process. It must outlive every test, so it can belong to none of them; Main owns
// it.
var shared struct {
	once   sync.Once
	owned  bool // Main will end it
	dir    string
	server *Server
	err    error
}

// Shared returns the one plain server of the test process, started at first use. Tests isolate themselves by namespace
// and must not kill, flush or reconfigure it. It needs Main.
func Shared(t testing.TB) *Server {
	t.Helper()
	if !shared.owned {
		t.Fatal("redistest.Shared has no owner: the package's TestMain must say goleak.VerifyTestMain(redistest.Main(m))")
	}
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "redistest"); shared.err == nil {
			shared.server, shared.err = StartSingle(shared.dir, Options{})
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// Runner runs the tests of a package and then ends the shared server.
type Runner struct{ tests *testing.M }

// Main makes Shared usable, and silences the client library, which tells of every connection that fails. What it
// returns goleak.VerifyTestMain takes in place of m.
func Main(m *testing.M) Runner {
	goredis.SetLogger(silence{})
	shared.owned = true
	return Runner{m}
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// Run runs the tests and returns their exit code, when nothing of the shared server is left.
func (r Runner) Run() int {
	code := r.tests.Run()
	if shared.server != nil {
		shared.server.Close()
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
	return code
}

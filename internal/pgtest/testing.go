package pgtest

import (
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx", which makes databases
	"go.uber.org/goleak"
)

// Driver is the name under which database/sql knows the driver.
const Driver = "pgx"

// shared is the server of this test process; Main owns it.
var shared struct {
	once   sync.Once
	owned  bool
	server *Server
	err    error
	count  atomic.Int64
}

// Database makes an empty database and returns its URL for Driver. It needs Main.
func Database(t testing.TB) string {
	t.Helper()
	if !shared.owned {
		t.Fatal("pgtest.Database has no owner: the package's TestMain must say goleak.VerifyTestMain(pgtest.Main(m))")
	}
	shared.once.Do(func() { shared.server, shared.err = Start() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	name := fmt.Sprintf("test%d", shared.count.Add(1))
	db, err := sql.Open(Driver, shared.server.URL("postgres"))
	if err == nil {
		_, err = db.ExecContext(t.Context(), "CREATE DATABASE "+name)
		_ = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return shared.server.URL(name)
}

// Runner runs the tests of a package and then ends the shared server.
type Runner struct{ tests goleak.TestingM }

// Main makes Database usable: goleak.VerifyTestMain takes its result in place of m.
func Main(m goleak.TestingM) Runner {
	shared.owned = true
	return Runner{m}
}

// Run runs the tests and returns their exit code, when nothing of the shared server is left.
func (r Runner) Run() int {
	code := r.tests.Run()
	if shared.server != nil {
		shared.server.Close()
	}
	return code
}

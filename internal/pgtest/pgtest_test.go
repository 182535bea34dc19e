package pgtest_test

import (
	"database/sql"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/internal/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Main(m)) }

// Each database is empty and apart from others.
func TestDatabases(t *testing.T) {
	for range 2 {
		db, err := sql.Open(pgtest.Driver, pgtest.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE a (n int)"); err != nil {
			t.Error(err)
		}
		_ = db.Close()
	}
}

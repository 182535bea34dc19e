package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/internal/pgtest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/outbox"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	if child() {
		return
	}
	goleak.VerifyTestMain(pgtest.Main(redistest.Main(m)))
}

// database is one that has an outbox.
type database struct {
	driver, url string
	dialect     outbox.Dialect
}

func (d database) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func sqlite(t testing.TB) database {
	t.Helper()
	url := "file:" + filepath.Join(t.TempDir(), "app.db") +
		"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(100)&_pragma=synchronous(NORMAL)"
	return prepared(t, database{"sqlite", url, outbox.SQLite})
}

func postgres(t testing.TB) database {
	t.Helper()
	return prepared(t, database{pgtest.Driver, pgtest.Database(t), outbox.PostgreSQL})
}

// prepared makes the table, twice as every instance of a program does.
func prepared(t testing.TB, d database) database {
	t.Helper()
	schema, err := outbox.Schema(d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := d.open(t).ExecContext(t.Context(), schema); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// onBoth runs a test on each database.
func onBoth(t *testing.T, f func(t *testing.T, d database)) {
	t.Parallel()
	for name, of := range map[string]func(testing.TB) database{"sqlite": sqlite, "postgresql": postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, of(t))
		})
	}
}

// broker returns one inside the process, with a fault of publishes if that is not nil.
func broker(t testing.TB, fault faulty.Fault) *ferry.Broker {
	t.Helper()
	inner, err := memory.New(context.Background(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := faulty.New(inner)
	d.Set(faulty.Publish, fault)
	b, err := ferry.New(d, ferry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}

// run runs a relay until the test ends, or the function that it returns is called.
func run(t testing.TB, b *ferry.Broker, d database, o outbox.Options) (*outbox.Relay, func()) {
	t.Helper()
	o.Dialect = d.dialect
	if o.Name == "" {
		o.Name = "app"
	}
	if o.Every == 0 {
		o.Every = 5 * time.Millisecond
	}
	r, err := outbox.New(b, d.open(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return r, runtest.Start(t, r.Run)
}

// insert writes messages in a transaction, and commits it.
func insert(t testing.TB, db *sql.DB, ms ...*ferry.Message) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err == nil {
		err = errors.Join(outbox.Insert(t.Context(), tx, ms...), tx.Commit())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// numbered returns n messages of a key whose bodies count from first on.
func numbered(topic, key string, first, n int) (ms []*ferry.Message) {
	for i := range n {
		ms = append(ms, &ferry.Message{Topic: topic, Key: key, Body: fmt.Appendf(nil, "%04d", first+i)})
	}
	return ms
}

// execute makes changes of the database.
func execute(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// await looks until done holds.
func await(t testing.TB, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(time.Minute)
	for !done() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("it has not happened in a minute")
		}
	}
}

// drained waits until only rows are left that are set aside.
func drained(t testing.TB, r *outbox.Relay) (s outbox.Stats) {
	t.Helper()
	await(t, func() bool {
		var err error
		s, err = r.Stats(t.Context())
		return err == nil && s.Pending == 0
	})
	return s
}

// published returns what lies in a topic, by key, in order.
func published(t testing.TB, b *ferry.Broker, topic string) map[string][]*ferry.Message {
	t.Helper()
	by := map[string][]*ferry.Message{}
	for _, state := range []ferry.State{driver.StateReady, driver.StateDelayed} {
		for q := (ferry.Query{Topic: topic, Group: driver.DefaultGroup, State: state, Limit: 1000}); ; {
			p, err := b.Driver().Browse(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range p.Entries {
				by[e.Key] = append(by[e.Key], e.Message)
			}
			if q.Cursor = p.Next; p.Next == "" {
				break
			}
		}
	}
	return by
}

// inOrder demands that a key has the bodies 0 to n-1, once each and in order.
func inOrder(t testing.TB, ms []*ferry.Message, n int) {
	t.Helper()
	if len(ms) != n {
		t.Errorf("%d messages, want %d", len(ms), n)
	}
	for i, m := range ms {
		if want := fmt.Sprintf("%04d", i); string(m.Body) != want {
			t.Fatalf("message %d is %s", i, m.Body)
		}
	}
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

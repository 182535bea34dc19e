package outbox_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/outbox"
)

// childOf tells a child process what to relay, and when it is killed.
const childOf = "FERRY_TEST_OUTBOX"

// child relays in a process of its own until it is killed at its fail point. It reports false in that of the tests.
func child() bool {
	role := strings.Split(os.Getenv(childOf), "|")
	if len(role) != 5 {
		return false
	}
	broker, name, url, dialect, point := role[0], role[1], role[2], outbox.PostgreSQL, role[4]
	if role[3] == outbox.SQLite.String() {
		dialect = outbox.SQLite
	}
	ctx := context.Background()
	b, err := open.URL(ctx, broker)
	if err != nil {
		exit(err)
	}
	d := faulty.New(b.Driver())
	d.Set(faulty.Publish, faulty.ByNumber(func(batch int) faulty.Fault {
		if batch != points[point] {
			return nil
		}
		return func(_ context.Context, _ faulty.Call, do func()) error {
			if point == "after publish" {
				do()
			}
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}))
	if b, err = ferry.New(d, ferry.Options{}); err != nil {
		exit(err)
	}
	db, err := sql.Open(name, url)
	if err != nil {
		exit(err)
	}
	r, err := outbox.New(b, db, outbox.Options{Name: "app", Dialect: dialect, Batch: 5}) // one of each key
	if err == nil {
		err = r.Run(ctx)
	}
	exit(err)
	return true
}

// points are the fail points, and at the publish of which batch they are: the seventh comes after a removal.
var points = map[string]int{"before publish": 5, "after publish": 5, "after removal": 7}

// A relay that is killed with -9 before or after any of its steps loses no row, and those of a key stay in order; the
// broker knows the ids of what is published again.
func TestKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t).URL()
	for point := range points {
		t.Run(point, func(t *testing.T) {
			onBoth(t, func(t *testing.T, d database) { killed(t, server+"?prefix=o"+rand.Text(), d, point) })
		})
	}
}

func killed(t *testing.T, url string, d database, point string) {
	const keys, each = 5, 40
	db := d.open(t)
	for i := range each {
		for k := range keys {
			insert(t, db, numbered("a", fmt.Sprint(k), i, 1)...)
		}
	}
	c := exec.Command(os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), childOf+"="+strings.Join([]string{url, d.driver, d.url, d.dialect.String(), point}, "|"))
	out, err := c.CombinedOutput()
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("it was not killed: %v %s", err, out)
	}
	b, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	r, _ := run(t, b, d, outbox.Options{})
	s := drained(t, r)
	if repeated := s.Duplicates > 0; repeated != (point == "after publish") {
		t.Errorf("%d rows were published again", s.Duplicates)
	}
	got := published(t, b, "a")
	for k := range keys {
		inOrder(t, got[fmt.Sprint(k)], each)
	}
}

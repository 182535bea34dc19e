package redisconn

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// A level that the server gave at first and does not give any more is refused, warned of, and given again when it is
// back.
func TestSurveyFollowsTheServer(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{AOF: "always"})
	c, err := Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var log bytes.Buffer
	v, err := NewSurvey(t.Context(), c, "k", false, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	set := func(name, value string) {
		if _, err := server.Command("CONFIG", "SET", name, value); err != nil {
			t.Fatal(err)
		}
		v.Again(t.Context())
	}
	check := func(when string, level driver.Durability, want error) {
		t.Helper()
		if err := v.Refuse(t.Context(), level); !errors.Is(err, want) {
			t.Errorf("%s: level %s gives %v, want %v", when, level, err, want)
		}
	}
	check("at first", driver.Synced, nil)
	check("at first", 0, nil)
	check("at first", driver.Replicated(1), driver.ErrUnsupported)
	set("appendfsync", "everysec")
	check("everysec", driver.Synced, driver.ErrNotApplied)
	check("everysec", driver.Written, nil)
	set("appendonly", "no")
	check("no file", driver.Written, driver.ErrNotApplied)
	check("no file", 0, nil)
	if n := strings.Count(log.String(), "survives less than before"); n != 2 {
		t.Errorf("%d warnings, want 2:\n%s", n, &log)
	}
	for name, value := range map[string]string{"appendfsync": "always", "appendonly": "yes"} {
		if _, err := server.Command("CONFIG", "SET", name, value); err != nil {
			t.Fatal(err)
		}
	}
	v.last.Store(time.Now().Add(-2 * resurvey).UnixNano()) // nobody has looked for a while
	check("always again", driver.Synced, nil)
}

// Of a cluster the weakest primary counts.
func TestSurveyTakesTheWeakestPrimary(t *testing.T) {
	t.Parallel()
	set := redistest.Cluster(t, redistest.Options{AOF: "always", Steady: true})
	c, err := Connect(set.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for i, node := range set.Nodes[:3] {
		s, err := Examine(t.Context(), c, "k")
		if err != nil || s.Level() != driver.Synced {
			t.Fatalf("level %v, %v", s, err)
		}
		if _, err := node.Command("CONFIG", "SET", "appendfsync", "everysec"); err != nil {
			t.Fatal(err)
		}
		if s, err = Examine(t.Context(), c, "k"); err != nil || s.Level() != driver.Written {
			t.Errorf("with primary %d at everysec: level %s, %v", i, s.Level(), err)
		}
		if _, err := node.Command("CONFIG", "SET", "appendfsync", "always"); err != nil {
			t.Fatal(err)
		}
	}
}

// Package river is the peer River in its SQLite mode: a job queue for Go in one file.
package river

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	_ "modernc.org/sqlite" // the driver that River tests with

	"github.com/ferrymq/ferry/bench/system"
)

const (
	workers  = 1000
	interval = time.Millisecond // the least it allows
)

// System is River on a SQLite file of its own.
type System struct{}

// Info describes it.
func (System) Info() system.Info {
	return system.Info{
		Name: "River (SQLite)", Version: system.ModuleVersion("github.com/riverqueue/river/riverdriver/riversqlite"),
		Settings: fmt.Sprintf("modernc.org/sqlite %s, SetMaxOpenConns(1), journal_mode WAL, synchronous NORMAL; MaxWorkers "+
			"%d, FetchCooldown and FetchPollInterval %v; singles by Insert, batches by InsertManyFast; nil logger",
			system.ModuleVersion("modernc.org/sqlite"), workers, interval),
		Why: "its guide to SQLite asks for one connection and names this SQLite driver; throughput is limited by " +
			"FetchCooldown, says its documentation, and without notifications pickup by FetchPollInterval: both are at their " +
			"minimum; " +
			"WAL with NORMAL is SQLite's own advice for speed, and does not sync each commit; other numbers of workers were " +
			"not tried",
	}
}

// Lacks says what River cannot do.
func (System) Lacks(f system.Feature) string {
	switch f {
	case system.Async:
		return "Insert waits for the database"
	case system.Keys:
		return "River does not order by key"
	case system.Restarts:
		return "not measured"
	}
	return ""
}

// Open makes a database with River's tables.
func (System) Open(ctx context.Context, _ system.Options) (system.Session, error) {
	dir, err := os.MkdirTemp("", "bench-river-")
	if err != nil {
		return nil, err
	}
	s := &session{dir: dir}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

type session struct {
	dir    string
	db     *sql.DB
	insert *river.Client[*sql.Tx] // runs no jobs
}

func (s *session) open(ctx context.Context) (err error) {
	s.db, err = sql.Open("sqlite", "file:"+filepath.Join(s.dir, "river.sqlite3")+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
	if err != nil {
		return err
	}
	s.db.SetMaxOpenConns(1)
	migrator, err := rivermigrate.New(riversqlite.New(s.db), &rivermigrate.Config{Logger: quiet()})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	s.insert, err = river.NewClient(riversqlite.New(s.db), &river.Config{Logger: quiet()})
	return err
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (s *session) Publisher() system.Publisher { return publisher{s.insert} }

func (s *session) Usage() (system.Usage, error) {
	bytes, err := system.DirSize(s.dir)
	return system.Usage{Bytes: bytes}, err
}

func (s *session) Close() error {
	var err error
	if s.db != nil {
		err = s.db.Close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// Settled waits until every job is completed, as the table says.
func (s *session) Settled(ctx context.Context) error {
	for {
		var left int
		if err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM river_job WHERE state <> ?",
			rivertype.JobStateCompleted).Scan(&left); err != nil {
			return err
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d jobs are not completed: %w", left, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

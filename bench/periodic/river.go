package periodic

import (
	"context"
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite" // the driver that River tests with
)

func riverSystem() System {
	return System{
		Name: "River (SQLite)", Mortal: true, Start: func() (string, func() error, error) {
			dir, err := os.MkdirTemp("", "bench-periodic-")
			return filepath.Join(dir, "river.sqlite3"), func() error { return os.RemoveAll(dir) }, err
		}, Run: runRiver,
		Settings: "one client on a SQLite file as in the other benchmarks, periodic jobs whose next run is the next full " +
			"second, FetchCooldown and FetchPollInterval 1 ms, all else default; the tick is the job's " +
			"ScheduledAt. Its leader alone enqueues; one that was killed is replaced when its term is over. On PostgreSQL it " +
			"was not measured",
	}
}

// everySecond is a schedule of River at full seconds, as the others have it.
type everySecond struct{}

func (everySecond) Next(t time.Time) time.Time { return t.Truncate(time.Second).Add(time.Second) }

type periodicJob struct {
	Schedule string `json:"schedule"`
}

func (periodicJob) Kind() string { return topic }

type riverHandler struct {
	river.WorkerDefaults[periodicJob]
	j *Journal
}

func (h *riverHandler) Work(_ context.Context, job *river.Job[periodicJob]) error {
	h.j.Handled(job.Args.Schedule, strconv.FormatInt(job.ID, 10), job.ScheduledAt.Truncate(time.Second))
	return nil
}

func runRiver(ctx context.Context, where string, j *Journal) error {
	db, err := sql.Open("sqlite",
		"file:"+where+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	quiet := slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(riversqlite.New(db), &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	known, jobs := river.NewWorkers(), make([]*river.PeriodicJob, Schedules)
	river.AddWorker(known, &riverHandler{j: j})
	for i := range jobs {
		jobs[i] = river.NewPeriodicJob(everySecond{}, func() (river.JobArgs,
			*river.InsertOpts) {
			return periodicJob{name(i)}, nil
		}, nil)
	}
	client, err := river.NewClient(riversqlite.New(db), &river.Config{
		Logger: quiet, Workers: known, PeriodicJobs: jobs, FetchCooldown: time.Millisecond,
		FetchPollInterval: time.Millisecond,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
	})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return client.Stop(context.WithoutCancel(ctx))
}

package river

import (
	"context"
	"database/sql"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"

	"github.com/ferrymq/ferry/bench/system"
)

// job carries a body. River stores it as JSON.
type job struct {
	Body []byte `json:"body"`
}

func (job) Kind() string { return "bench" }

type publisher struct{ client *river.Client[*sql.Tx] }

// KeepsBodies is false: a job is encoded before Insert returns.
func (p publisher) KeepsBodies() bool { return false }

func (p publisher) Publish(ctx context.Context, m system.Message) error {
	var opts *river.InsertOpts
	if m.Delay > 0 {
		opts = &river.InsertOpts{ScheduledAt: time.Now().Add(m.Delay)}
	}
	_, err := p.client.Insert(ctx, job{Body: m.Body}, opts)
	return err
}

func (p publisher) PublishBatch(ctx context.Context, ms []system.Message) error {
	many := make([]river.InsertManyParams, len(ms))
	for i, m := range ms {
		many[i] = river.InsertManyParams{Args: job{Body: m.Body}}
	}
	_, err := p.client.InsertManyFast(ctx, many)
	return err
}

func (p publisher) PublishAsync(ctx context.Context, m system.Message) error {
	return p.Publish(ctx, m)
}

func (p publisher) Flush(context.Context) error { return nil }

// Consume starts a client that works.
func (s *session) Consume(ctx context.Context, o system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	if o.Concurrency == 0 {
		o.Concurrency = workers
	}
	known := river.NewWorkers()
	river.AddWorker(known, &handler{handle: h})
	client, err := river.NewClient(riversqlite.New(s.db), &river.Config{
		Logger: quiet(), Workers: known, FetchCooldown: interval, FetchPollInterval: interval,
		RetryPolicy: after(o.RetryAfter),
		Queues:      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: o.Concurrency}},
	})
	if err != nil {
		return nil, err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	return consumer{client}, nil
}

type handler struct {
	river.WorkerDefaults[job]
	handle system.Handler
}

func (w *handler) Work(_ context.Context, j *river.Job[job]) error { return w.handle(j.Args.Body) }

// after tries a failed job again after this time.
type after time.Duration

// NextRetry is when that is.
func (a after) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(time.Duration(a)) }

type consumer struct{ client *river.Client[*sql.Tx] }

func (c consumer) Stop(ctx context.Context) error { return c.client.Stop(ctx) }

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

const jobsLong = `Jobs are replays that lie in the broker (retry --all --background): whoever runs 'ferry dlq jobs run',
or a program with a deadletter.Clerk, does them. A job whose process is killed is gone on with by the next.`

func newJobs(p process) *cobra.Command {
	c := newNoun("jobs", "List, run and cancel replays that lie in the broker", "  ferry dlq jobs ls\n  ferry dlq jobs run\n  ferry dlq jobs cancel 5KX2M7QJ4TZA",
		newJobsList(p), newJobsRun(p), newJobsCancel(p))
	c.Long = jobsLong
	return c
}

// jobColumns show how far jobs are.
var jobColumns = []column[deadletter.JobStatus]{
	{title: "id", cell: func(s deadletter.JobStatus) any { return s.ID }},
	{title: "state", cell: func(s deadletter.JobStatus) any { return s.State }},
	{title: "topic", width: 30, cell: func(s deadletter.JobStatus) any { return s.Job.Topic }},
	{title: "where", width: 40, cell: func(s deadletter.JobStatus) any { return s.Job.Where }},
	{title: "scanned", number: true, cell: func(s deadletter.JobStatus) any { return s.Scanned }},
	{title: "of", number: true, cell: func(s deadletter.JobStatus) any { return s.Total }},
	{title: "done", number: true, cell: func(s deadletter.JobStatus) any { return s.Done }},
	{title: "skipped", number: true, cell: func(s deadletter.JobStatus) any { return s.Skipped }},
	{title: "by", width: 30, cell: func(s deadletter.JobStatus) any { return s.Instance }},
	{title: "problem", width: 60, cell: func(s deadletter.JobStatus) any { return s.Problem }},
}

func newJobsList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls", Short: "List jobs that wait, run, or ended in the last week", Long: jobsLong, Example: "  ferry dlq jobs ls\n  ferry dlq jobs ls --output ndjson"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.with(c.Context(), func(s session) error {
			queue, err := s.queue()
			if err != nil {
				return err
			}
			jobs, err := queue.Jobs(c.Context())
			if err != nil {
				return err
			}
			return list(s.remote, jobColumns, jobs, "No jobs. 'ferry dlq retry TOPIC --all --background' makes one.")
		})
	}
	return c
}

func newJobsCancel(p process) *cobra.Command {
	c := &cobra.Command{Use: "cancel JOB", Short: "End a job; what it has done stays done", Example: "  ferry dlq jobs cancel 5KX2M7QJ4TZA"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			queue, err := s.queue()
			if err != nil {
				return err
			}
			if err := queue.CancelJob(c.Context(), args[0]); err != nil {
				return err
			}
			return s.sayf("job %s ends as soon as its clerk looks", args[0])
		})
	}
	return c
}

func newJobsRun(p process) *cobra.Command {
	c := &cobra.Command{Use: "run", Short: "Do the jobs that lie in the broker, until none is left", Long: jobsLong + "\n\nIt may run on several machines at once: a job is done by one at a time.",
		Example: "  ferry dlq jobs run\n  ferry dlq jobs run --forever"}
	r := newRemote(p, c)
	var forever bool
	c.Flags().BoolVar(&forever, "forever", false, "wait for more")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.with(c.Context(), func(s session) error { return s.runJobs(c.Context(), forever) })
	}
	return c
}

// jobsEvery is how often it is looked whether a job is left.
const jobsEvery = 200 * time.Millisecond

func (s session) runJobs(ctx context.Context, forever bool) error {
	queue, err := s.queue()
	if err != nil {
		return err
	}
	clerk, err := deadletter.NewClerk(queue, deadletter.ClerkOptions{OnError: func(err error) { s.notef("%v", err) }})
	if err != nil {
		return err
	}
	work, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- clerk.Run(work) }()
	var jobs []deadletter.JobStatus
	for over := false; !over && err == nil; {
		select {
		case err = <-done:
			done <- nil
			over = true
		case <-time.After(jobsEvery):
		}
		if ctx.Err() != nil {
			break
		}
		if jobs, err = queue.Jobs(ctx); !forever {
			over = over || noneLeft(jobs)
		}
	}
	stop()
	if err = errors.Join(err, <-done); err != nil || ctx.Err() != nil {
		return err
	}
	return list(s.remote, jobColumns, jobs, "No jobs.")
}

func noneLeft(jobs []deadletter.JobStatus) bool {
	for _, j := range jobs {
		if !j.State.Ended() {
			return false
		}
	}
	return true
}

// jobView is the JSON form of a job that was submitted.
type jobView struct {
	Job     string `json:"job"`
	Topic   string `json:"topic"`
	Matched int    `json:"matched"`
}

// submit counts, asks, and leaves a replay to whoever does jobs.
func (r replayFlags) submit(ctx context.Context, s session, topic string, b bulk, d deed) (err error) {
	queue, err := s.queue()
	if err != nil {
		return err
	}
	dry := d.replay
	if dry.Selection, err = b.selection(topic); err != nil {
		return err
	}
	dry.DryRun = true
	plan, err := queue.Replay(ctx, dry)
	if err != nil {
		return err
	}
	if err := s.confirm(ctx, b.yes, fmt.Sprintf("%s %d %s of topic %s in the background", d.verb, plan.Done, b.store.many, topic), ""); err != nil {
		return err
	}
	job := deadletter.Job{Topic: topic, Group: b.group, Where: b.filter.condition(), To: r.to, ToGroup: r.toGroup, After: r.move.delay, Rate: b.rate, MaxRounds: r.maxRounds}
	if r.patch != "" {
		if job.Patch, err = patchText(r.patch); err != nil {
			return err
		}
	}
	if b.store.state != driver.StateDead {
		job.State, job.KeepBody = b.store.state, true
	}
	id, err := queue.Submit(ctx, job)
	if err != nil {
		return err
	}
	return s.one(jobView{Job: id, Topic: topic, Matched: plan.Done}, func() error {
		return s.sayf("job %s will %s %d %s of topic %s: see 'ferry dlq jobs ls', and 'ferry dlq jobs run' if no program has a clerk", id, d.verb, plan.Done, b.store.many, topic)
	})
}

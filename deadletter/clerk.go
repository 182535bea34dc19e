package deadletter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// ClerkOptions of a Clerk. The zero value is fine.
type ClerkOptions struct {
	// Instance names this clerk. Defaults to host, process id and a random part.
	Instance string
	// Lease is how soon another clerk goes on after a crash. Defaults to what the broker recommends.
	Lease time.Duration
	// Every is how often progress is noted in the broker, and a cancel looked for. Defaults to a second.
	Every time.Duration
	// Each, if set, is told what became of every letter, by the clerk that did it.
	Each func(id string, out LetterReport)
	// OnError is told what keeps the clerk from working. It tries again. May be nil.
	OnError func(err error)
}

// Clerk does jobs, one after the other. Any number may run: a job is done by one at a time, and gone on with by another when
// its clerk is killed.
type Clerk struct {
	queue *Queue
	o     ClerkOptions
}

// NewClerk checks the options and returns a clerk.
func NewClerk(q *Queue, opts ClerkOptions) (*Clerk, error) {
	if q == nil {
		return nil, driver.NewError(driver.ErrInvalid, "the queue is nil", "make one with deadletter.New", nil)
	}
	if opts.Lease < 0 || opts.Every < 0 {
		return nil, driver.NewError(driver.ErrInvalid, "Lease or Every is negative", "leave it zero for the default", nil)
	}
	if opts.Instance == "" {
		host, _ := os.Hostname()
		opts.Instance = fmt.Sprintf("%.64s-%d-%.6s", host, os.Getpid(), rand.Text())
	}
	if opts.Lease == 0 {
		opts.Lease = q.driver.Capabilities().DefaultLease
	}
	if opts.Every == 0 {
		opts.Every = time.Second
	}
	return &Clerk{q, opts}, nil
}

// Run does jobs as they come, until ctx ends. It then returns nil, and another clerk goes on with the job at hand. A broker
// that is away for a time does not end it.
func (c *Clerk) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := c.serve(ctx)
		if errors.Is(err, driver.ErrClosed) || errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrUnsupported) || errors.Is(err, driver.ErrRefused) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			if c.o.OnError != nil {
				c.o.OnError(err)
			}
			_ = sleep(ctx, time.Second)
		}
	}
	return nil
}

func (c *Clerk) serve(ctx context.Context) (err error) {
	sub, err := c.queue.driver.Subscribe(ctx, driver.SubscribeOptions{Topic: JobTopic, Instance: c.o.Instance, Lease: c.o.Lease, MaxInflight: 1})
	if err != nil {
		return err
	}
	defer func() {
		if closed := leave(ctx, sub); err == nil {
			err = closed
		}
	}()
	for {
		ds, err := sub.Receive(ctx, 1)
		if err != nil {
			return err
		}
		err = whileHeld(ctx, sub, ds[0], c.o.Lease, func(ctx context.Context) error { return c.do(ctx, ds[0]) })
		if err != nil {
			return err // closing gives the job back
		}
		if err := answer(sub.Settle(ctx, []driver.Settlement{{Delivery: ds[0], Outcome: driver.Ack}}), 0); err != nil {
			return err
		}
	}
}

// do works on a job until it has ended. An error means that somebody has to go on with it.
func (c *Clerk) do(ctx context.Context, d *driver.Delivery) error {
	noted, at, err := c.queue.notes(ctx)
	if err != nil {
		return err
	}
	s, known := noted[d.ID]
	notes := at[d.ID]
	if known && s.State.Ended() {
		return nil // its clerk was killed before it could say so
	}
	var problem error
	if !known {
		s, problem = statusOf(d.Message)
	}
	s.Submitted, s.Instance, s.State = d.PublishedAt, c.o.Instance, JobRunning
	end := func(state JobState, problem string) error {
		s.State, s.Problem = state, problem
		if _, err := c.queue.note(ctx, &s, notes); err != nil {
			return err
		}
		c.queue.delete(ctx, []driver.Target{{Topic: JobTopic, ID: cancelID(d.ID)}}) // what stays expires
		return nil
	}
	if problem != nil {
		return end(JobFailed, problem.Error())
	}
	stop, err := c.work(ctx, &s, &notes)
	switch {
	case stop:
		return end(JobCancelled, "")
	case err == nil:
		return end(JobDone, "")
	case ctx.Err() == nil && permanent(err):
		return end(JobFailed, err.Error())
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errLease) { // told to stop: whoever goes on begins here
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, _ = c.queue.note(last, &s, notes)
	}
	return err
}

// work replays the letters of a job and notes how far it is. It reports true when it was cancelled.
func (c *Clerk) work(ctx context.Context, s *JobStatus, notes *[]driver.Target) (stop bool, err error) {
	r, err := s.Job.replay()
	if err != nil {
		return false, err
	}
	if c.o.Each != nil {
		r.Each = func(out LetterReport) { c.o.Each(s.ID, out) }
	}
	before := *s
	// Some backends keep the time of publishing in milliseconds only.
	r.Checkpoint = &Checkpoint{Newest: s.Submitted.Add(time.Millisecond), Done: s.Done, Skipped: s.Skipped}
	op, err := c.queue.Start(ctx, r)
	if err != nil {
		return false, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err = op.Wait()
	}()
	tick := time.NewTicker(c.o.Every)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		case <-tick.C:
			if yes, failed := c.queue.cancelled(ctx, s.ID); failed == nil && yes {
				stop = true
				op.Cancel()
				<-ended
			}
		}
		s.take(before, op.Progress())
		if !over && !stop {
			*notes, _ = c.queue.note(ctx, s, *notes) // what is not noted now is noted the next time
		}
		over = over || stop
	}
	return stop && err != nil, err
}

// take sets the figures of a job from those of the operation, which began when it stood at before.
func (s *JobStatus) take(before JobStatus, r Report) {
	s.Phase, s.Scanned, s.Total, s.Done, s.Skipped = r.Phase, r.Scanned, r.Total, r.Checkpoint.Done, r.Checkpoint.Skipped
	s.Why = r.Why
	for why, n := range before.Why {
		s.Why[why] += n
	}
}

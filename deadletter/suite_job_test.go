package deadletter_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

// clerk runs one until the function that it returns is called.
func (k *kit) clerk(each func(id string, out deadletter.LetterReport)) (stop func()) {
	k.Helper()
	c, err := deadletter.NewClerk(k.queue, deadletter.ClerkOptions{Every: 20 * time.Millisecond, Each: each})
	k.ok(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	return func() {
		cancel()
		k.ok(<-done)
	}
}

// job waits until a job is as it should be.
func (k *kit) job(id string, ok func(s deadletter.JobStatus) bool) deadletter.JobStatus {
	k.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		s, err := k.queue.Job(k.ctx(), id)
		k.ok(err)
		if ok(s) {
			return s
		}
		if time.Now().After(deadline) {
			k.Fatalf("%+v", s)
		}
	}
}

func ended(s deadletter.JobStatus) bool { return s.State.Ended() }

// jobIsGoneOnWith: a clerk stops in the middle, another goes on; what died after the job was submitted is left alone.
func jobIsGoneOnWith(k *kit) {
	k.dead(slow, numbered("m", 30)...)
	id, err := k.queue.Submit(k.ctx(), deadletter.Job{Topic: topic, Where: `id != "m007"`, Rate: 100, Headers: map[string]string{"by": "job"}, By: "ann"})
	k.ok(err)
	if s := k.job(id, func(deadletter.JobStatus) bool { return true }); s.State != deadletter.JobWaiting || s.Job.By != "ann" {
		k.Errorf("%+v", s)
	}
	time.Sleep(5 * time.Millisecond) // the clock of the backend counts in milliseconds
	k.dead(slow, "later")
	replayed := make(chan string, 100)
	stop := k.clerk(func(_ string, out deadletter.LetterReport) { replayed <- out.ID })
	first := <-replayed
	stop()
	if s := k.job(id, func(s deadletter.JobStatus) bool { return true }); s.State != deadletter.JobRunning || s.Done == 0 || s.Done >= 29 {
		k.Errorf("after %s: %+v", first, s)
	}
	stop = k.clerk(nil)
	s := k.job(id, ended)
	stop()
	if s.State != deadletter.JobDone || s.Done != 29 || s.Skipped != 0 {
		k.Errorf("%+v", s)
	}
	if got := sorted(k.all(deadletter.Selection{Topic: topic}, 10, 0)); !slices.Equal(got, []string{"later", "m007"}) {
		k.Errorf("left: %v", got)
	}
	k.take(topic, driver.DefaultGroup, 29, func(d *driver.Delivery) driver.Settlement {
		if d.Headers["by"] != "job" {
			k.Errorf("%s has %v", d.ID, d.Headers)
		}
		return driver.Settlement{Outcome: driver.Ack}
	})
}

func jobIsCancelled(k *kit) {
	k.dead(slow, numbered("m", 30)...)
	id, err := k.queue.Submit(k.ctx(), deadletter.Job{Topic: topic, Rate: 5, Remove: true})
	k.ok(err)
	removed := make(chan string, 100)
	stop := k.clerk(func(_ string, out deadletter.LetterReport) { removed <- out.ID })
	defer stop()
	<-removed
	k.ok(k.queue.CancelJob(k.ctx(), id))
	s := k.job(id, ended)
	if s.State != deadletter.JobCancelled || s.Done == 0 || s.Done == 30 {
		k.Errorf("%+v", s)
	}
	if left := k.all(deadletter.Selection{Topic: topic}, 10, 0); len(left) != 30-s.Done {
		k.Errorf("%d removed, %d left", s.Done, len(left))
	}
	if err := k.queue.CancelJob(k.ctx(), id); !errors.Is(err, driver.ErrConflict) {
		k.Errorf("cancelled twice: %v", err)
	}
	if _, err := k.queue.Job(k.ctx(), "nobody"); !errors.Is(err, driver.ErrNotFound) {
		k.Errorf("an unknown job: %v", err)
	}
}

// jobThatFails: what is wrong with a job is told when it is submitted, or in its status.
func jobThatFails(k *kit) {
	for _, wrong := range []deadletter.Job{
		{Where: "reason =="}, {Patch: json.RawMessage(`[{"op":"x"}]`)}, {Patch: json.RawMessage(`{`)}, {Remove: true, To: "other"}, {Rate: -1},
		{State: driver.StateInvalid}, {ToGroup: "a", To: "b"}, {Topic: "no such name!"},
	} {
		if _, err := k.queue.Submit(k.ctx(), wrong); !errors.Is(err, driver.ErrInvalid) {
			k.Errorf("%+v: %v", wrong, err)
		}
	}
	id, err := k.queue.Submit(k.ctx(), deadletter.Job{Topic: "nowhere"})
	k.ok(err)
	stop := k.clerk(nil)
	defer stop()
	if s := k.job(id, ended); s.State != deadletter.JobFailed || !strings.Contains(s.Problem, "nowhere") {
		k.Errorf("%+v", s)
	}
}

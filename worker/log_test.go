package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/worker"
)

// logged is a log that tests read.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// lines returns those that contain every part.
func (l *logged) lines(parts ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for line := range strings.Lines(l.text.String()) {
		missing := false
		for _, part := range parts {
			missing = missing || !strings.Contains(line, part)
		}
		if !missing {
			found = append(found, line)
		}
	}
	return found
}

func (l *logged) want(t *testing.T, n int, parts ...string) {
	t.Helper()
	if got := l.lines(parts...); len(got) != n {
		t.Errorf("%d lines with %q, want %d; the log is\n%s", len(got), parts, n, strings.Join(l.lines(), ""))
	}
}

const secret = "s3cret-of-a-body"

// What fails reaches the log, with where it happened and without its body.
func TestFailuresAreLogged(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var log logged
		w := worker.New(r.broker, worker.Options{Logger: log.logger(), MaxAttempts: 2})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { panic("no harbour") })
		worker.Handle(w, "typed", func(context.Context, *ferry.Msg[time.Time]) error { return nil })
		worker.HandleBatch(w, "batch", func(context.Context, []*ferry.Msg[string]) error {
			panic("no boat")
		}, worker.MaxAttempts(1))
		worker.HandleRaw(w, "fatal", func(context.Context, *ferry.Delivery) error {
			return worker.Fatal(errors.New("no such user"))
		})
		stop := start(t, w)
		<-w.Ready()
		r.publish(topic, []string{secret})
		pause(time.Minute) // more than three in a second would be left out
		r.publish("fatal", []string{secret})
		pause(time.Minute)
		if _, err := ferry.Publish(t.Context(), r.broker, "typed", secret); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := ferry.Publish(t.Context(), r.broker, "batch", secret); err != nil {
				t.Fatal(err)
			}
		}
		pause(time.Minute)
		mustStop(t, stop)
		log.want(t, 2, "level=ERROR", "a handler panicked", "topic=orders", "no harbour", "log_test.go")
		log.want(t, 1, "tried again", "topic=orders", "attempt=1", "reason=panic")
		log.want(t, 1, "level=WARN", "became a dead letter", "topic=orders", "reason=panic", "attempt=2", "id=")
		log.want(t, 1, "a handler panicked", "topic=batch") // one panic, three messages
		log.want(t, 3, "became a dead letter", "topic=batch")
		log.want(t, 1, "became a dead letter", "topic=fatal", "reason=fatal", "no such user")
		log.want(t, 1, "level=WARN", "does not decode", "topic=typed", "content_type=application/json")
		log.want(t, 4, "subscribed")
		log.want(t, 0, secret)
	})
}

func TestLostLeaseIsLogged(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		var log logged
		w := worker.New(r.broker, worker.Options{Logger: log.logger()})
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			<-ctx.Done()
			return ctx.Err()
		})
		d.set(func() { d.lose = "a" })
		stop := start(t, w)
		r.publish(topic, []string{"a"})
		pause(5 * time.Second)
		log.want(t, 1, "level=WARN", "a lease was lost", "topic=orders", "id=")
		mustStop(t, stop)
	})
}

// A storm of failures is a few lines a second, and the count of the others: also of those at its end.
func TestLogIsLimited(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var log logged
		w := worker.New(r.broker, worker.Options{Logger: log.logger(), Concurrency: 1})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { return worker.Fatal(errors.New("no")) })
		stop := start(t, w)
		r.publish(topic, numbered(500))
		synctest.Wait()
		log.want(t, 3, "became a dead letter")
		log.want(t, 0, "left_out")
		pause(2 * time.Second)
		log.want(t, 1, "left out of the log", "left_out=497", "became a dead letter")
		r.publish(topic, numbered(5))
		synctest.Wait()
		mustStop(t, stop) // before the span is over
		log.want(t, 6, "msg=\"a message became a dead letter\"")
		log.want(t, 1, "left_out=2")
	})
}

// The broker of a program that says nothing of a logger logs where the program does.
func TestDefaultLogger(t *testing.T) { //nolint:paralleltest // it changes the default logger
	var log logged
	was := slog.Default()
	slog.SetDefault(log.logger())
	t.Cleanup(func() { slog.SetDefault(was) })
	synctest.Test(t, func(t *testing.T) {
		b, err := memory.Open(t.Context(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := worker.New(b, worker.Options{})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { panic("no harbour") })
		stop := start(t, w)
		<-w.Ready()
		if _, err := ferry.Publish(t.Context(), b, topic, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		mustStop(t, stop)
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	log.want(t, 1, "a handler panicked", "no harbour")
}

// A first publish makes the group default. Consumers of another group are told that nobody reads it.
func TestUnreadDefaultGroup(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(r *rig)
		groups []string
		warned int
	}{
		{"published before", func(r *rig) { r.publish(topic, numbered(3)) }, []string{"billing"}, 1},
		{"subscribed before", func(*rig) {}, []string{"billing"}, 0},
		{"default is consumed too", func(r *rig) { r.publish(topic, numbered(3)) }, []string{"billing", "default"}, 0},
		{"default was consumed", func(r *rig) {
			r.publish(topic, numbered(3))
			w := worker.New(r.broker, worker.Options{Concurrency: 1})
			worker.HandleRaw(w, topic, nothing)
			mustStop(r.t, handled(r.t, w))
			r.publish(topic, numbered(3))
		}, []string{"billing"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				var log logged
				c.before(r)
				w := worker.New(r.broker, worker.Options{Logger: log.logger()})
				for _, g := range c.groups {
					worker.HandleRaw(w, topic, nothing, worker.Group(g))
				}
				stop := start(t, w)
				synctest.Wait()
				log.want(t, c.warned, "level=WARN", "made the group default", "topic=orders", "group=billing",
					fmt.Sprint("waiting=", 3))
				mustStop(t, stop)
			})
		})
	}
}

// However many groups of a topic there are, that is looked at once: each answer is about all of them.
func TestUnreadIsLookedAtOnceForATopic(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var log logged
		for _, topic := range []string{"orders", "bills"} {
			r.publish(topic, numbered(3))
		}
		asked := &statsCounter{Driver: r.broker.Driver()}
		b, err := ferry.New(asked, ferry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := worker.New(b, worker.Options{Logger: log.logger()})
		for _, topic := range []string{"orders", "bills"} {
			for i := range 20 {
				worker.HandleRaw(w, topic, nothing, worker.Group(fmt.Sprint("group-", i)))
			}
		}
		stop := handled(t, w)
		if n := asked.n.Load(); n != 2 {
			t.Errorf("40 groups of two topics asked %d times", n)
		}
		log.want(t, 2, "made the group default", "group=group-0")
		mustStop(t, stop)
	})
}

// handled starts w and waits until it has nothing left to do.
func handled(t *testing.T, w *worker.Worker) (stop func() error) {
	t.Helper()
	stop = start(t, w)
	synctest.Wait()
	return stop
}

package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// Ready is closed when the last subscription stands, and not before.
func TestReady(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		d.set(func() { d.subscribe = func() error { return ferry.ErrNotApplied } })
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, nothing)
		worker.HandleRaw(w, "boats", nothing, worker.Group("billing"))
		stop := start(t, w)
		pause(time.Minute)
		select {
		case <-w.Ready():
			t.Fatal("ready although the broker is away")
		default:
		}
		d.set(func() { d.subscribe = nil })
		<-w.Ready()
		for _, h := range w.Health() {
			if h.State != worker.OK {
				t.Errorf("%+v", h)
			}
		}
		r.publish("boats", []string{"a"})
		synctest.Wait()
		if s := w.Stats(); s.Consumers[1].Acked != 1 {
			t.Errorf("what was published then went elsewhere: %+v", s.Consumers[1])
		}
		mustStop(t, stop)
	})
}

// A broker that has no room for another group is not away, and is not said to be.
func TestNoRoomToSubscribe(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		d.set(func() { d.subscribe = func() error { return ferry.ErrFull } })
		var log strings.Builder
		w := worker.New(r.broker, worker.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		worker.HandleRaw(w, topic, nothing)
		stop := start(t, w)
		pause(time.Minute)
		d.set(func() { d.subscribe = nil })
		<-w.Ready()
		mustStop(t, stop)
		if said := log.String(); !strings.Contains(said, "no room") || strings.Contains(said, "away") {
			t.Errorf("it says %s", said)
		}
	})
}

func TestCheckBeforeRun(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		if err := w.Check(); err == nil || !strings.Contains(err.Error(), "no handler") {
			t.Errorf("without a handler: %v", err)
		}
		worker.HandleRaw(w, topic, nothing)
		if err := w.Check(); err != nil {
			t.Errorf("all is well, and Check says %v", err)
		}
		worker.HandleRaw(w, "a b", nothing, worker.Concurrency(0))
		err := w.Check()
		if !errors.Is(err, ferry.ErrInvalid) || !strings.Contains(err.Error(), `topic name "a b"`) ||
			!strings.Contains(err.Error(), "concurrency 0") {
			t.Errorf("%v", err)
		}
		if ran := w.Run(t.Context()); ran == nil || ran.Error() != err.Error() {
			t.Errorf("Run says %v, and Check said %v", ran, err)
		}
		if err := (*worker.Worker)(nil).Check(); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("nil worker: %v", err)
		}
	})
}

// A handler that comes too late is refused aloud, and the hint says what to do.
func TestRegisteredWhileRunning(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var log logged
		w := worker.New(r.broker, worker.Options{Logger: log.logger()})
		worker.HandleRaw(w, topic, nothing)
		stop := start(t, w)
		<-w.Ready()
		worker.HandleRaw(w, "boats", nothing)
		err := w.Check()
		if !errors.Is(err, ferry.ErrInvalid) || !strings.Contains(err.Error(), `topic "boats"`) ||
			!strings.Contains(err.Error(), "another worker") {
			t.Errorf("%v", err)
		}
		log.want(t, 1, "level=ERROR", "after Run began", "topic=boats")
		mustStop(t, stop)
	})
}

func TestStopTimeoutFitsKubernetes(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { time.Sleep(time.Hour); return nil })
		stop := start(t, w)
		r.publish(topic, []string{"a"})
		synctest.Wait()
		began := time.Now()
		if err := stop(); !errors.Is(err, worker.ErrAbandoned) {
			t.Errorf("Run returned %v", err)
		}
		if took := time.Since(began); took < 25*time.Second || took >= 30*time.Second {
			t.Errorf("a stop took %v, and a pod has 30 s", took)
		}
		time.Sleep(time.Hour)
	})
}

// Park(0) gives a message up at once, uncounted: here another group member takes it.
func TestParkAtOnce(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var attempts []int
		w := worker.New(r.broker, worker.Options{Concurrency: 1, MaxAttempts: 1})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			attempts = append(attempts, d.Attempt)
			if len(attempts) < 5 {
				return worker.Park(0)
			}
			return nil
		})
		stop := start(t, w)
		began := time.Now()
		r.publish(topic, []string{"a"})
		synctest.Wait()
		if !time.Now().Equal(began) {
			t.Error("it waited")
		}
		equal(t, attempts, []int{1, 1, 1, 1, 1})
		if g := r.group(topic); g.Acked != 1 || g.Dead != 0 {
			t.Errorf("%+v", g)
		}
		mustStop(t, stop)
	})
}

// StrictPriority takes the highest priority first, however few there are of it and however many of the others.
func TestStrictPriority(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		for i, p := range []ferry.Lane{ferry.Low, ferry.Normal, ferry.High, ferry.Urgent} {
			for n := range 20 {
				r.publish(topic, []string{string("lnhu"[i]) + numbered(20)[n]}, ferry.Priority(p))
			}
		}
		var order []byte
		w := worker.New(r.broker, worker.Options{Concurrency: 1})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			order = append(order, d.Body[0])
			return nil
		}, worker.StrictPriority())
		mustStop(t, handled(t, w))
		if want := strings.Repeat("u", 20) + strings.Repeat("h", 20) + strings.Repeat("n", 20) + strings.Repeat("l",
			20); string(order) != want {
			t.Errorf("handled %s\nwant    %s", order, want)
		}
	})
}

// Start lets a group that the handler creates begin earlier, within what the topic keeps; one that exists goes on where
// it was.
func TestStart(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		if err := r.memory.EnsureTopic(t.Context(), topic, driver.TopicConfig{Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		r.publish(topic, []string{"a", "b"})
		time.Sleep(time.Minute)
		since := time.Now()
		r.publish(topic, []string{"c"})
		for _, c := range []struct {
			group string
			start driver.Position
			want  []string
		}{
			{"all", ferry.Beginning(), []string{"a", "b", "c"}},
			{"all", ferry.Beginning(), nil},
			{"late", driver.Position{From: driver.FromTime, Time: since}, []string{"c"}},
			{"new", driver.Position{}, nil},
		} {
			var got []string
			w := worker.New(r.broker, worker.Options{Concurrency: 1})
			worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
				got = append(got, body(d))
				return nil
			}, worker.Group(c.group), worker.Start(c.start))
			mustStop(t, handled(t, w))
			equal(t, got, c.want)
		}
	})
}

func TestStartNeedsHistory(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.publish(topic, []string{"a"})
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, nothing, worker.Group("all"), worker.Start(ferry.Beginning()))
		if err := w.Run(t.Context()); !errors.Is(err, ferry.ErrUnsupported) {
			t.Errorf("Run returned %v", err)
		}
	})
}

// ahead is a broker that reads ahead, as Redis Streams and Kafka do.
type ahead struct{ driver.Driver }

func (a ahead) Capabilities() driver.Capabilities {
	c := a.Driver.Capabilities()
	c.KeyedPriority = driver.PriorityInFetchWindow
	return c
}

// Strict priority is refused, before anything runs, where an urgent message may wait behind what was read ahead.
func TestStrictPriorityIsRefusedWhereItCannotHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d driver.Driver) driver.Driver { return ahead{d} }, ferry.Hooks{})
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, nothing, worker.StrictPriority())
		err := w.Check()
		if !errors.Is(err, ferry.ErrUnsupported) || !strings.Contains(err.Error(), "worker.Weights") {
			t.Errorf("Check returned %v", err)
		}
		if err := w.Run(t.Context()); !errors.Is(err, ferry.ErrUnsupported) {
			t.Errorf("Run returned %v", err)
		}
	})
}

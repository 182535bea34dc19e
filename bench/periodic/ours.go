package periodic

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	ferrymq "github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/bench/system/redisserver"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/schedule"
	"github.com/ferrymq/ferry/worker"
)

// A place that outlives a process.
func inMemory() (string, func() error, error) {
	return "memory://", func() error { return nil }, nil
}

func onDisk() (string, func() error, error) {
	dir, err := os.MkdirTemp("", "bench-periodic-")
	return "disk://" + dir, func() error { return os.RemoveAll(dir) }, err
}

func onRedis() (string, func() error, error) {
	server, err := redisserver.Start()
	if err != nil {
		return "", nil, err
	}
	return server.URL(), server.Close, nil
}

func ferry(name string, mortal bool, start func() (string, func() error, error)) System {
	return System{
		Name: name, Mortal: mortal, Start: start, Run: runOurs,
		Settings: "schedule.Options{}, worker.Options{}, Schedule{Spec: \"@every 1s\"}: all defaults; the tick is that of " +
			"the message's header",
	}
}

func runOurs(ctx context.Context, where string, j *Journal) error {
	b, err := open.URL(ctx, where)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close(context.WithoutCancel(ctx)) }()
	s, err := schedule.New(b, schedule.Options{})
	if err != nil {
		return err
	}
	for i := range Schedules {
		if err := s.Put(ctx, schedule.Schedule{Name: name(i), Spec: "@every 1s",
			Message: &ferrymq.Message{Topic: topic}}); err != nil {
			return err
		}
	}
	w := worker.New(b, worker.Options{})
	worker.HandleRaw(w, topic, func(_ context.Context, d *ferrymq.Delivery) error {
		tick, err := time.Parse(time.RFC3339Nano, d.Headers[schedule.HeaderTick])
		if err != nil {
			return err
		}
		j.Handled(d.Headers[schedule.HeaderName], d.ID, tick)
		return nil
	})
	var both sync.WaitGroup
	var ticking, working error
	both.Go(func() { ticking = s.Run(ctx) })
	both.Go(func() { working = w.Run(ctx) })
	both.Wait()
	return errors.Join(ticking, working)
}

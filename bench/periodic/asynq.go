package periodic

import (
	"context"
	"errors"
	"time"

	"github.com/hibiken/asynq"

	"github.com/redis/go-redis/v9"
)

func asynqSystem() System {
	return System{
		Name: "asynq", Mortal: true, Start: onRedis, Run: runAsynq,
		Settings: "one Scheduler and one Server in the process, \"@every 1s\", TaskCheckInterval and " +
			"DelayedTaskCheckInterval 10 ms (1 s and 5 s by default), all else default; the tick is the full second before " +
			"PostEnqueueFunc. Its documentation asks for one scheduler, since each of several would enqueue every task",
	}
}

func runAsynq(ctx context.Context, where string, j *Journal) error {
	o, err := redis.ParseURL(where)
	if err != nil {
		return err
	}
	at := asynq.RedisClientOpt{Addr: o.Addr}
	server := asynq.NewServer(at, asynq.Config{TaskCheckInterval: 10 * time.Millisecond,
		DelayedTaskCheckInterval: 10 * time.Millisecond, LogLevel: asynq.FatalLevel})
	err = server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		j.Handled(string(t.Payload()), t.ResultWriter().TaskID(), time.Time{})
		return nil
	}))
	if err != nil {
		return err
	}
	defer server.Shutdown()
	s := asynq.NewScheduler(at, &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel,
		PostEnqueueFunc: func(info *asynq.TaskInfo, err error) {
			if err == nil {
				j.Fired(string(info.Payload), info.ID, time.Now().Truncate(time.Second))
			}
		}})
	for i := range Schedules {
		if _, e := s.Register("@every 1s", asynq.NewTask(topic, []byte(name(i)))); e != nil {
			err = errors.Join(err, e)
		}
	}
	if err = errors.Join(err, s.Start()); err != nil {
		return err
	}
	<-ctx.Done()
	s.Shutdown()
	return nil
}

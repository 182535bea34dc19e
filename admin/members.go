package admin

import (
	"context"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/internal/jsontime"
)

func (a *API) listMembers(ctx context.Context, _ *struct{}) (api.Members, error) {
	all, err := cluster.Members(ctx, a.broker)
	out := api.Members{Members: make([]api.Member, len(all))}
	for i, m := range all {
		out.Members[i] = viewMember(m)
	}
	return out, err
}

func viewMember(i cluster.Info) api.Member {
	v := api.Member{Member: i.Member(), Name: i.Name, Incarnation: i.Incarnation, Shared: i.Shared, Health: i.Health(),
		Host: i.Host, PID: i.PID,
		Version: i.Version, Address: i.Address, Labels: i.Labels, Started: jsontime.At(i.Started),
		Uptime:   api.Duration(i.Uptime),
		LastBeat: jsontime.At(i.LastBeat), Silence: api.Duration(i.Silence), CPU: i.CPU, Memory: i.Memory,
		Workers: make([]api.Worker, len(i.Workers)), Running: make([]api.Running, len(i.Running))}
	for n, w := range i.Workers {
		v.Workers[n] = viewWorker(w)
	}
	for n, r := range i.Running {
		v.Running[n] = api.Running{Topic: r.Topic, Group: r.Group, ID: r.ID, Key: r.Key, Attempt: r.Attempt,
			For: api.Duration(r.For), Zombie: r.Zombie}
	}
	return v
}

func viewWorker(w cluster.WorkerInfo) api.Worker {
	v := api.Worker{Instance: w.Instance, Concurrency: w.Concurrency, Running: w.Running, Zombies: w.Zombies,
		Handlers: make([]api.Handler, len(w.Handlers)), Omitted: w.Omitted}
	for n, h := range w.Handlers {
		v.Handlers[n] = api.Handler{Topic: h.Topic, Group: h.Group, State: string(h.State), Quiet: h.Quiet, Error: h.Err,
			Running: h.Running, Waiting: h.Waiting,
			Acked: h.Acked, Retried: h.Retried, Dead: h.Dead, Dropped: h.Dropped, PerSecond: h.PerSecond, ErrorRate: h.ErrorRate,
			Mean: api.Duration(h.Mean)}
	}
	return v
}

func (a *API) showMember(ctx context.Context, in *input.MemberPath) (api.Member, error) {
	i, err := cluster.Find(ctx, a.broker, in.Member)
	if err != nil {
		return api.Member{}, err
	}
	return viewMember(i), nil
}

type tellMember struct {
	input.MemberPath
	Body api.Command
}

// tellMember has a member obey a command, and answers when it has.
func (a *API) tellMember(ctx context.Context, in *tellMember, note *auth.Action) error {
	c := in.Body
	note.Topic, note.Group, note.Detail = c.Topic, c.Group, in.Member+" "+c.Do
	return cluster.Tell(ctx, a.broker, in.Member, cluster.Command{Do: cluster.Action(c.Do), Worker: c.Worker,
		Topic: c.Topic, Group: c.Group, ID: c.ID, Concurrency: c.Concurrency})
}

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// memberView is the JSON form of a process that joined.
type memberView struct {
	Member      string            `json:"member"`
	Name        string            `json:"name"`
	Incarnation string            `json:"incarnation"`
	Shared      bool              `json:"shared"`
	Health      string            `json:"health"`
	Host        string            `json:"host"`
	PID         int               `json:"pid"`
	Version     string            `json:"version,omitempty"`
	Address     string            `json:"address,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Started     *jsontime.Time    `json:"started"`
	Uptime      jsontime.Duration `json:"uptime"`
	LastBeat    *jsontime.Time    `json:"last_beat"`
	Silence     jsontime.Duration `json:"silence"`
	Workers     []workerView      `json:"workers"`
	Running     []runningView     `json:"running"`
}

type workerView struct {
	Instance    string        `json:"instance"`
	Concurrency int           `json:"concurrency"`
	Running     int           `json:"running"`
	Zombies     int           `json:"zombies"`
	Handlers    []handlerView `json:"handlers"`
	Omitted     int           `json:"omitted,omitempty"`
}

type handlerView struct {
	Topic     string            `json:"topic"`
	Group     string            `json:"group"`
	State     string            `json:"state"`
	Quiet     bool              `json:"quiet"`
	Error     string            `json:"error,omitempty"`
	Running   int               `json:"running"`
	Waiting   int               `json:"waiting"`
	Acked     uint64            `json:"acked"`
	Retried   uint64            `json:"retried"`
	Dead      uint64            `json:"dead"`
	Dropped   uint64            `json:"dropped"`
	PerSecond float64           `json:"per_second"`
	ErrorRate float64           `json:"error_rate"`
	Mean      jsontime.Duration `json:"mean"`
}

type runningView struct {
	Topic   string            `json:"topic"`
	Group   string            `json:"group"`
	ID      string            `json:"id"`
	Key     string            `json:"key,omitempty"`
	Attempt int               `json:"attempt"`
	For     jsontime.Duration `json:"for"`
	Zombie  bool              `json:"zombie"`
}

func viewMember(i cluster.Info) memberView {
	v := memberView{
		Member: i.Member(), Name: i.Name, Incarnation: i.Incarnation, Shared: i.Shared, Health: i.Health(), Host: i.Host,
		PID: i.PID, Version: i.Version,
		Address: i.Address, Labels: i.Labels, Started: jsontime.At(i.Started), Uptime: jsontime.Duration(i.Uptime),
		LastBeat: jsontime.At(i.LastBeat),
		Silence:  jsontime.Duration(i.Silence), Workers: []workerView{}, Running: []runningView{},
	}
	for _, w := range i.Workers {
		x := workerView{Instance: w.Instance, Concurrency: w.Concurrency, Running: w.Running, Zombies: w.Zombies,
			Omitted: w.Omitted, Handlers: []handlerView{}}
		for _, h := range w.Handlers {
			x.Handlers = append(x.Handlers, handlerView{Topic: h.Topic, Group: h.Group, State: string(h.State), Quiet: h.Quiet,
				Error: h.Err, Running: h.Running, Waiting: h.Waiting,
				Acked: h.Acked, Retried: h.Retried, Dead: h.Dead, Dropped: h.Dropped, PerSecond: h.PerSecond,
				ErrorRate: h.ErrorRate, Mean: jsontime.Duration(h.Mean)})
		}
		v.Workers = append(v.Workers, x)
	}
	for _, m := range i.Running {
		v.Running = append(v.Running, runningView{m.Topic, m.Group, m.ID, m.Key, m.Attempt, jsontime.Duration(m.For),
			m.Zombie})
	}
	return v
}

// consumes reports whether one of its handlers is for the topic.
func (v memberView) consumes(topic string) bool { return slices.Contains(v.topics(), topic) }

// topics of its handlers.
func (v memberView) topics() []string {
	var names []string
	for _, w := range v.Workers {
		for _, h := range w.Handlers {
			names = append(names, h.Topic)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// handlers tells how many run, and how many may.
func (v memberView) handlers() string {
	running, most := 0, 0
	for _, w := range v.Workers {
		running, most = running+w.Running, most+w.Concurrency
	}
	return fmt.Sprintf("%d/%d", running, most)
}

var memberColumns = []column[memberView]{
	{title: "member", width: 40, cell: func(v memberView) any { return v.Member }},
	{title: "health", cell: func(v memberView) any { return v.Health }},
	{title: "version", width: 20, cell: func(v memberView) any { return v.Version }},
	{title: "host", width: 24, cell: func(v memberView) any { return v.Host }},
	{title: "pid", number: true, cell: func(v memberView) any { return v.PID }},
	{title: "uptime", number: true, cell: func(v memberView) any { return shortly(v.Uptime) }},
	{title: "running", number: true, cell: func(v memberView) any { return v.handlers() }},
	{title: "beat", number: true, cell: func(v memberView) any { return shortly(v.Silence) + " ago" }},
	{title: "topics", width: 40, cell: func(v memberView) any { return strings.Join(v.topics(), " ") }},
}

var handlerColumns = []column[handlerView]{
	{title: "  topic", width: 30, cell: func(v handlerView) any { return "  " + v.Topic }},
	{title: "group", width: 20, cell: func(v handlerView) any { return v.Group }},
	{title: "state", cell: func(v handlerView) any {
		if v.Quiet {
			return "quiet"
		}
		return v.State
	}},
	{title: "running", number: true, cell: func(v handlerView) any { return v.Running }},
	{title: "waiting", number: true, cell: func(v handlerView) any { return v.Waiting }},
	{title: "acked", number: true, cell: func(v handlerView) any { return v.Acked }},
	{title: "retried", number: true, cell: func(v handlerView) any { return v.Retried }},
	{title: "dead", number: true, cell: func(v handlerView) any { return v.Dead }},
	{title: "a second", number: true, cell: func(v handlerView) any { return fmt.Sprintf("%.1f", v.PerSecond) }},
	{title: "failed", number: true, cell: func(v handlerView) any { return fmt.Sprintf("%.0f%%", 100*v.ErrorRate) }},
	{title: "takes", number: true, cell: func(v handlerView) any { return ago(v.Mean) }},
	{title: "error", width: 40, cell: func(v handlerView) any { return v.Error }},
}

var runningColumns = []column[runningView]{
	{title: "  runs", width: 40, cell: func(v runningView) any { return "  " + v.ID }},
	{title: "topic", width: 30, cell: func(v runningView) any { return v.Topic }},
	{title: "group", width: 20, cell: func(v runningView) any { return v.Group }},
	{title: "key", width: 20, cell: func(v runningView) any { return v.Key }},
	{title: "attempt", number: true, cell: func(v runningView) any { return v.Attempt }},
	{title: "for", number: true, cell: func(v runningView) any { return shortly(v.For) }},
}

// showMember prints everything about a process.
func (s session) showMember(v memberView) error {
	if err := s.sayf("%s  %s", v.Member, v.Health); err != nil {
		return err
	}
	labels := make([]string, 0, len(v.Labels))
	for _, name := range slices.Sorted(maps.Keys(v.Labels)) {
		labels = append(labels, name+"="+v.Labels[name])
	}
	if err := s.fields(field{"host", v.Host}, field{"pid", fmt.Sprint(v.PID)}, field{"version", v.Version},
		field{"address", v.Address}, field{"labels", strings.Join(labels, ", ")},
		field{"incarnation", v.Incarnation}, field{"started", clock(v.Started)},
		field{"last beat", shortly(v.Silence) + " ago"}); err != nil {
		return err
	}
	for _, w := range v.Workers {
		if err := s.fields(field{"worker", fmt.Sprintf("%s, %d of %d handlers run", w.Instance, w.Running,
			w.Concurrency)}); err != nil {
			return err
		}
		if err := list(s.remote, handlerColumns, w.Handlers, ""); err != nil {
			return err
		}
		if w.Omitted > 0 {
			s.notef("%d more handlers are not listed", w.Omitted)
		}
	}
	return list(s.remote, runningColumns, v.Running, "")
}

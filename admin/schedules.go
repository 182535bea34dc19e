package admin

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/internal/letterjson"
	"github.com/ferrymq/ferry/schedule"
)

type listSchedules struct {
	input.Paging
	Prefix string `query:"prefix" doc:"Of their names" maxLength:"256"`
}

// listSchedules lists the schedules of topics that whoever asks may see.
func (a *API) listSchedules(ctx context.Context, in *listSchedules) (api.SchedulePage, error) {
	p, err := a.schedules.List(ctx, schedule.Query{Prefix: in.Prefix, Cursor: in.Cursor, Limit: in.Limit})
	if err != nil {
		return api.SchedulePage{}, err
	}
	page := api.SchedulePage{Schedules: []api.Schedule{}, Next: p.Next}
	for _, s := range p.Schedules {
		if may(ctx, auth.View, scheduleTopic(s)) == nil {
			page.Schedules = append(page.Schedules, a.viewSchedule(ctx, s))
		}
	}
	return page, nil
}

// scheduleTopic is the topic of a schedule; empty if it has no message, which takes a grant on every topic.
func scheduleTopic(s schedule.Status) string {
	if s.Message == nil {
		return ""
	}
	return s.Message.Topic
}

func (a *API) viewSchedule(ctx context.Context, s schedule.Status) api.Schedule {
	v := api.Schedule{Name: s.Name, State: string(s.State), Spec: s.Spec, Zone: s.Zone, Missed: string(s.Missed),
		Until: jsontime.At(s.Until), Jitter: api.Duration(s.Jitter),
		Next: jsontime.At(s.Next), Last: jsontime.At(s.Last), Problem: s.Problem, Revision: s.Revision,
		Edited: jsontime.At(s.Edited), Topic: scheduleTopic(s)}
	if s.Message == nil {
		return v
	}
	m := a.viewEntry(ctx, s.Message.Topic, driver.Entry{Message: s.Message})
	v.Hidden = m.Hidden
	v.Message = plannedOf(m.Record, s.Message)
	return v
}

// plannedOf is the message of a schedule, with of its content what the record has.
func plannedOf(r letterjson.Record, m *driver.Message) *api.NewMessage {
	return &api.NewMessage{Key: m.Key, Body: r.Body, BodyBase64: r.BodyBase64, ContentType: m.ContentType,
		Headers: r.Headers, Priority: m.Priority.String(),
		Delay: api.Duration(m.Delay), TTL: api.Duration(m.TTL), Dedup: m.DedupID, DedupWindow: api.Duration(m.DedupWindow),
		MaxAttempts: m.MaxAttempts}
}

// scheduleFor returns one that whoever asks has a scope for.
func (a *API) scheduleFor(ctx context.Context, name string, scope auth.Scope) (schedule.Status, error) {
	s, err := a.schedules.Get(ctx, name)
	if err != nil {
		return s, err
	}
	return s, may(ctx, scope, scheduleTopic(s))
}

func (a *API) showSchedule(ctx context.Context, in *input.SchedulePath) (api.Schedule, error) {
	s, err := a.scheduleFor(ctx, in.Name, auth.View)
	if err != nil {
		return api.Schedule{}, err
	}
	return a.viewSchedule(ctx, s), nil
}

type putSchedule struct {
	input.SchedulePath
	Body api.PutSchedule
}

func (in *putSchedule) topics() []string { return []string{in.Body.Topic} }

// putSchedule makes a schedule, or changes one. Who changes one must also have the scope for the topic it had before.
func (a *API) putSchedule(ctx context.Context, in *putSchedule, note *auth.Action) (api.Schedule, error) {
	b := in.Body
	note.Topic, note.Detail = b.Topic, in.Name+" "+b.Spec
	if _, err := a.scheduleFor(ctx, in.Name, auth.Operate); err != nil && !isGone(err) {
		return api.Schedule{}, err
	}
	if !utf8.ValidString(in.Name) {
		return api.Schedule{}, driver.NewError(driver.ErrInvalid, "the name of the schedule is not UTF-8",
			"use printable text", nil)
	}
	m, err := messageOf(b.Topic, b.Message)
	if err != nil {
		return api.Schedule{}, err
	}
	err = a.schedules.Put(ctx, schedule.Schedule{Name: in.Name, Spec: b.Spec, Zone: b.Zone, Message: m,
		Missed: schedule.Missed(b.Missed), Until: timeOf(b.Until),
		Jitter: time.Duration(b.Jitter), Paused: b.Paused})
	if err != nil {
		return api.Schedule{}, err
	}
	return a.showSchedule(ctx, &in.SchedulePath)
}

// changeSchedule does something to a schedule that whoever asks may operate.
func (a *API) changeSchedule(ctx context.Context, name string, note *auth.Action,
	change func(context.Context, string) error) error {
	note.Detail = name
	s, err := a.scheduleFor(ctx, name, auth.Operate)
	if err != nil {
		return err
	}
	note.Topic = scheduleTopic(s)
	return change(ctx, name)
}

func (a *API) deleteSchedule(ctx context.Context, in *input.SchedulePath, note *auth.Action) error {
	return a.changeSchedule(ctx, in.Name, note, a.schedules.Delete)
}

func (a *API) pauseSchedule(ctx context.Context, in *input.SchedulePath, note *auth.Action) error {
	return a.changeSchedule(ctx, in.Name, note, a.schedules.Pause)
}

func (a *API) resumeSchedule(ctx context.Context, in *input.SchedulePath, note *auth.Action) error {
	return a.changeSchedule(ctx, in.Name, note, a.schedules.Resume)
}

// triggerSchedule publishes the message of a schedule now, beside its ticks.
func (a *API) triggerSchedule(ctx context.Context, in *input.SchedulePath, note *auth.Action) (out api.Published,
	err error) {
	err = a.changeSchedule(ctx, in.Name, note, func(ctx context.Context, name string) error {
		r, err := a.schedules.Trigger(ctx, name)
		out = viewReceipt(note.Topic, r)
		return err
	})
	return out, err
}

type nextTicks struct {
	Spec  string `query:"spec" required:"true" maxLength:"1024"`
	Zone  string `query:"zone" maxLength:"128"`
	Count int    `query:"count" default:"5" minimum:"1" maximum:"100"`
}

// nextTicks tells when a spec ticks, before anybody schedules by it.
func (a *API) nextTicks(_ context.Context, in *nextTicks) (api.Ticks, error) {
	all, err := schedule.Next(in.Spec, in.Zone, time.Now(), in.Count)
	out := api.Ticks{Ticks: make([]api.Time, len(all))}
	for i, t := range all {
		out.Ticks[i] = api.Time{Time: t}
	}
	return out, err
}

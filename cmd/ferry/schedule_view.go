package main

import (
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/schedule"
)

// scheduleView is a schedule in JSON. It is stable.
type scheduleView struct {
	Name     string            `json:"name"`
	State    string            `json:"state,omitempty"`
	Spec     string            `json:"spec,omitempty"`
	Zone     string            `json:"zone,omitempty"`
	Missed   string            `json:"missed,omitempty"`
	Until    *jsontime.Time    `json:"until,omitempty"`
	Jitter   jsontime.Duration `json:"jitter,omitempty"`
	Next     *jsontime.Time    `json:"next,omitempty"`
	Ticks    []jsontime.Time   `json:"ticks,omitempty"` // the next ones
	Last     *jsontime.Time    `json:"last,omitempty"`
	Problem  string            `json:"problem,omitempty"`
	Revision uint64            `json:"revision"`
	Edited   *jsontime.Time    `json:"edited,omitempty"`
	Message  *plannedView      `json:"message,omitempty"`
}

// plannedView is a message that is not published yet.
type plannedView struct {
	messageView
	Delay       jsontime.Duration `json:"delay,omitempty"`
	TTL         jsontime.Duration `json:"ttl,omitempty"`
	Dedup       string            `json:"dedup,omitempty"`
	DedupWindow jsontime.Duration `json:"dedup_window,omitempty"`
	Unique      string            `json:"unique,omitempty"`
	UniqueFor   jsontime.Duration `json:"unique_for,omitempty"`
}

func viewPlanned(m *ferry.Message) *plannedView {
	v := &plannedView{messageView: viewMessage(m), Delay: jsontime.Duration(m.Delay), TTL: jsontime.Duration(m.TTL),
		Dedup: m.DedupID, DedupWindow: jsontime.Duration(m.DedupWindow)}
	if m.Unique != nil {
		v.Unique, v.UniqueFor = m.Unique.ID, jsontime.Duration(m.Unique.TTL)
	}
	return v
}

func viewSchedule(st schedule.Status) scheduleView {
	v := scheduleView{Name: st.Name, State: string(st.State), Spec: st.Spec, Zone: st.Zone, Missed: string(st.Missed),
		Until:  jsontime.At(st.Until),
		Jitter: jsontime.Duration(st.Jitter), Next: jsontime.At(st.Next), Last: jsontime.At(st.Last), Problem: st.Problem,
		Revision: st.Revision, Edited: jsontime.At(st.Edited)}
	if m := st.Message; m != nil {
		v.Message = viewPlanned(m)
	}
	return v
}

// shownTicks is how many ticks to come are shown of a schedule.
const shownTicks = 5

// viewWithTicks returns the view of a schedule with its next ticks.
func viewWithTicks(st schedule.Status) (scheduleView, error) {
	v := viewSchedule(st)
	if st.Next.IsZero() {
		return v, nil
	}
	ticks, err := schedule.Next(st.Spec, st.Zone, st.Next.Add(-time.Millisecond), shownTicks)
	for _, t := range ticks {
		if st.Until.IsZero() || !t.After(st.Until) {
			v.Ticks = append(v.Ticks, jsontime.Time{Time: t})
		}
	}
	return v, err
}

var scheduleColumns = []column[scheduleView]{
	{title: "schedule", width: 40, cell: func(v scheduleView) any { return v.Name }},
	{title: "state", cell: func(v scheduleView) any { return v.State }},
	{title: "spec", width: 32, cell: func(v scheduleView) any { return v.Spec }},
	{title: "zone", cell: func(v scheduleView) any { return v.Zone }},
	{title: "topic", width: 32, cell: func(v scheduleView) any {
		if v.Message == nil {
			return ""
		}
		return v.Message.Topic
	}},
	{title: "next", cell: func(v scheduleView) any { return textOf(v.Next) }},
	{title: "last", cell: func(v scheduleView) any { return textOf(v.Last) }},
	{title: "problem", width: 40, cell: func(v scheduleView) any { return v.Problem }},
}

func textOf(t *jsontime.Time) string {
	if t == nil {
		return ""
	}
	return t.String()
}

// showSchedule prints everything about a schedule.
func (r *remote) showSchedule(v scheduleView) error {
	lines := [][2]string{
		{"spec", v.Spec}, {"zone", v.Zone}, {"missed", v.Missed}, {"until", textOf(v.Until)}, {"jitter", nonzero(v.Jitter)},
		{"last", textOf(v.Last)}, {"problem", v.Problem}, {"edited", textOf(v.Edited)},
		{"topic", v.Message.Topic}, {"key", v.Message.Key}, {"priority", v.Message.Priority},
		{"delay", nonzero(v.Message.Delay)}, {"ttl", nonzero(v.Message.TTL)},
		{"unique", v.Message.Unique}, {"body", short(v.Message.preview(), 200)},
	}
	if err := r.sayf("%s  %s", v.Name, v.State); err != nil {
		return err
	}
	for i, t := range v.Ticks {
		title := ""
		if i == 0 {
			title = "next"
		}
		lines = append(lines, [2]string{title, t.String()})
	}
	for _, l := range lines {
		if l[1] == "" {
			continue
		}
		if err := r.sayf("  %-9s %s", l[0], l[1]); err != nil {
			return err
		}
	}
	return nil
}

func nonzero(d jsontime.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// tickView is one time at which a spec ticks.
type tickView struct {
	At    jsontime.Time `json:"at"`
	Local string        `json:"local"` // in the zone of the spec
	In    string        `json:"in"`
}

var tickColumns = []column[tickView]{
	{title: "tick", cell: func(v tickView) any { return v.At }},
	{title: "in its zone", cell: func(v tickView) any { return v.Local }},
	{title: "after", cell: func(v tickView) any { return v.In }},
}

func ticksOf(spec, zone string, from time.Time, n int) ([]tickView, error) {
	ticks, err := schedule.Next(spec, zone, from, n)
	if err == nil && len(ticks) == 0 {
		err = everTicks(spec, zone)
	}
	if err != nil {
		return nil, err
	}
	loc, err := time.LoadLocation(zone) // known, because the spec was read
	if err != nil {
		return nil, err
	}
	views := make([]tickView, len(ticks))
	for i, t := range ticks {
		views[i] = tickView{jsontime.Time{Time: t}, t.In(loc).Format("Mon 2006-01-02 15:04:05 -0700"),
			t.Sub(from).Round(time.Second).String()}
	}
	return views, nil
}

// everTicks says of a spec without a tick to come that it never had one either, or nil.
func everTicks(spec, zone string) error {
	ticks, err := schedule.Next(spec, zone, time.Unix(0, 0), 1)
	if err == nil && len(ticks) == 0 {
		return usage(fmt.Sprintf("the spec %q never ticks", printable(spec)), "give a date that exists")
	}
	return err
}

// scheduleChange is what was done to a schedule.
type scheduleChange struct {
	Schedule string         `json:"schedule"`
	Result   string         `json:"result"`
	Next     *jsontime.Time `json:"next,omitempty"`
	Message  string         `json:"message,omitempty"` // the id of what was published
}

func (r *remote) didSchedule(c scheduleChange) error {
	return r.one(c, func() error {
		switch {
		case c.Message != "":
			return r.sayf("%s schedule %s: message %s", c.Result, c.Schedule, c.Message)
		case c.Next != nil:
			return r.sayf("%s schedule %s, next at %s", c.Result, c.Schedule, c.Next)
		}
		return r.sayf("%s schedule %s", c.Result, c.Schedule)
	})
}

package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/operation"
	"github.com/ferrymq/ferry/operation/kinds"
)

func viewOperation(op operation.Operation) api.Operation {
	return api.Operation{ID: op.ID, Kind: op.Kind, Args: op.Args, State: string(op.State), Cancelling: op.Cancelling,
		DryRun: op.DryRun, By: op.By,
		Worker: op.Worker, Takes: op.Takes, Submitted: jsontime.At(op.Submitted), Started: jsontime.At(op.Started),
		Ended: jsontime.At(op.Ended),
		Phase: op.Phase, Scanned: op.Scanned, Total: op.Total, Done: op.Done, Skipped: op.Skipped, Why: op.Why,
		Problem: op.Problem}
}

// operationTopic is the topic that an operation is about; empty for every one.
func operationTopic(op operation.Operation) string {
	var args struct {
		Topic string `json:"topic"`
	}
	_ = json.Unmarshal(op.Args, &args) // of what cannot be read it is not known, which takes a grant on every topic
	return args.Topic
}

type listOperations struct {
	input.Paging
	Open bool   `query:"open" doc:"Leave out those that have ended"`
	Kind string `query:"kind" doc:"Begin of the name of their kind: letters." maxLength:"64"`
}

// listOperations lists the operations on topics that whoever asks may see.
func (a *API) listOperations(ctx context.Context, in *listOperations) (api.OperationPage, error) {
	p, err := a.operations.List(ctx, operation.Query{Open: in.Open, Prefix: in.Kind, Cursor: in.Cursor, Limit: in.Limit})
	if err != nil {
		return api.OperationPage{}, err
	}
	page := api.OperationPage{Operations: []api.Operation{}, Next: p.Next}
	for _, op := range p.Operations {
		if may(ctx, auth.View, operationTopic(op)) == nil {
			page.Operations = append(page.Operations, viewOperation(op))
		}
	}
	return page, nil
}

type operationPath struct {
	ID string `path:"id" maxLength:"64"`
}

// operationFor returns one that whoever asks has a scope for.
func (a *API) operationFor(ctx context.Context, id string, scope auth.Scope) (operation.Operation, error) {
	op, err := a.operations.Get(ctx, id)
	if err != nil {
		return op, err
	}
	return op, may(ctx, scope, operationTopic(op))
}

func (a *API) showOperation(ctx context.Context, in *operationPath) (api.Operation, error) {
	op, err := a.operationFor(ctx, in.ID, auth.View)
	if err != nil {
		return api.Operation{}, err
	}
	return viewOperation(op), nil
}

func (a *API) cancelOperation(ctx context.Context, in *operationPath, note *auth.Action) error {
	note.Detail = in.ID
	op, err := a.operationFor(ctx, in.ID, auth.Operate)
	if err != nil {
		return err
	}
	note.Topic = operationTopic(op)
	return a.operations.Cancel(ctx, in.ID)
}

// submit puts an operation into the broker, where whichever server is free does it.
func (a *API) submit(ctx context.Context, b api.Bulk, r operation.Request, note *auth.Action) (api.Operation, error) {
	r.DryRun, r.ID, r.By = b.DryRun, b.ID, auth.From(ctx).String()
	op, err := a.operations.Submit(ctx, r)
	note.Detail = op.ID
	if b.DryRun {
		note.Detail += " (dry run)"
	}
	return viewOperation(op), err
}

type purgeTopic struct {
	input.TopicPath
	Body api.Purge
}

func (a *API) purgeTopic(ctx context.Context, in *purgeTopic, note *auth.Action) (api.Operation, error) {
	m, err := a.messages(ctx, in.Topic, in.Body.SelectMessages, note)
	if err != nil {
		return api.Operation{}, err
	}
	return a.submit(ctx, in.Body.Bulk, kinds.Purge{Messages: m}.Request(), note)
}

type rescheduleTopic struct {
	input.TopicPath
	Body api.RescheduleMany
}

func (a *API) rescheduleTopic(ctx context.Context, in *rescheduleTopic, note *auth.Action) (api.Operation, error) {
	m, err := a.messages(ctx, in.Topic, in.Body.SelectMessages, note)
	if err != nil {
		return api.Operation{}, err
	}
	return a.submit(ctx, in.Body.Bulk, kinds.Reschedule{Messages: m, At: timeOf(in.Body.At)}.Request(), note)
}

// messages checks which messages an operation is about, and notes it.
func (a *API) messages(ctx context.Context, topic string, s api.SelectMessages, note *auth.Action) (kinds.Messages,
	error) {
	note.Topic, note.Group, note.Filter = topic, s.Group, s.Where
	m := kinds.Messages{Topic: topic, Group: s.Group, Where: s.Where}
	for _, state := range s.States {
		m.States = append(m.States, ferry.State(state))
	}
	if _, err := a.filter(ctx, topic, s.Where); err != nil {
		return m, err
	}
	_, err := a.driver.Stats(ctx, topic) // an operation on a topic that does not exist would fail later, out of sight
	return m, err
}

// timeOf returns the zero time for none.
func timeOf(t *api.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

type resetGroup struct {
	input.GroupPath
	Body api.Reset
}

func (a *API) resetGroup(ctx context.Context, in *resetGroup, note *auth.Action) (api.Operation, error) {
	note.Topic, note.Group = in.Topic, in.Group
	if _, err := a.showGroup(ctx, &in.GroupPath); err != nil {
		return api.Operation{}, err
	}
	return a.submit(ctx, in.Body.Bulk, kinds.Reset{Topic: in.Topic, Group: in.Group, To: in.Body.To,
		Time: timeOf(in.Body.Time), Force: in.Body.Force}.Request(), note)
}

type auditTopic struct {
	input.TopicPath
	Body api.AuditTopic
}

// auditTopic looks at every message of a topic, which is long: it is an operation.
func (a *API) auditTopic(ctx context.Context, in *auditTopic, note *auth.Action) (api.Operation, error) {
	note.Topic = in.Topic
	if _, err := a.driver.Stats(ctx, in.Topic); err != nil {
		return api.Operation{}, err
	}
	return a.submit(ctx, in.Body.Bulk, kinds.Audit{Topic: in.Topic, Fix: in.Body.Fix}.Request(), note)
}

type replayLetters struct{ Body api.ReplayMany }

func (in *replayLetters) topics() []string {
	if in.Body.To == "" || in.Body.To == in.Body.Topic {
		return []string{in.Body.Topic}
	}
	return []string{in.Body.Topic, in.Body.To}
}

func (a *API) replayLetters(ctx context.Context, in *replayLetters, note *auth.Action) (api.Operation, error) {
	b := in.Body
	l, err := a.lettersOf(ctx, b.SelectLetters, note)
	if err != nil {
		return api.Operation{}, err
	}
	if err := a.mayChange(ctx, b.Topic, b.To, b.Patch != nil); err != nil {
		return api.Operation{}, err
	}
	patch, err := patchText(b.Patch)
	if err != nil {
		return api.Operation{}, err
	}
	return a.submit(ctx, b.Bulk, kinds.Replay{Letters: l, To: b.To, ToGroup: b.ToGroup, After: b.After, Rate: b.Rate,
		MaxRounds: b.MaxRounds,
		Patch:     patch, Headers: b.Headers, KeepBody: b.KeepBody}.Request(), note)
}

type removeLetters struct{ Body api.RemoveMany }

func (in *removeLetters) topics() []string { return []string{in.Body.Topic} }

func (a *API) removeLetters(ctx context.Context, in *removeLetters, note *auth.Action) (api.Operation, error) {
	l, err := a.lettersOf(ctx, in.Body.SelectLetters, note)
	if err != nil {
		return api.Operation{}, err
	}
	return a.submit(ctx, in.Body.Bulk, kinds.Remove{Letters: l, Rate: in.Body.Rate}.Request(), note)
}

type expireLetters struct{ Body api.ExpireMany }

func (in *expireLetters) topics() []string { return []string{in.Body.Topic} }

func (a *API) expireLetters(ctx context.Context, in *expireLetters, note *auth.Action) (api.Operation, error) {
	b := in.Body
	l, err := a.lettersOf(ctx, b.SelectLetters, note)
	if err != nil {
		return api.Operation{}, err
	}
	return a.submit(ctx, b.Bulk, kinds.Expire{Letters: l, MaxAge: b.MaxAge, MaxCount: b.MaxCount,
		MaxBytes: b.MaxBytes}.Request(), note)
}

// lettersOf checks which letters an operation is about, and notes it.
func (a *API) lettersOf(ctx context.Context, s api.SelectLetters, note *auth.Action) (kinds.Letters, error) {
	note.Topic, note.Group, note.Filter = s.Topic, s.Group, s.Where
	state := driver.State(cmp.Or(s.State, string(driver.StateDead)))
	if _, err := a.filter(ctx, s.Topic, s.Where); err != nil {
		return kinds.Letters{}, err
	}
	return kinds.Letters{Topic: s.Topic, Group: s.Group, State: state, Where: s.Where}, nil
}

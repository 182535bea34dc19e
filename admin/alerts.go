package admin

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

func (a *API) needWatch() (*alert.Watch, error) {
	if a.o.Watch == nil {
		return nil, without("the server evaluates no rules", "give it some: see alerts in its configuration")
	}
	return a.o.Watch, nil
}

type listAlerts struct {
	Resolved bool `query:"resolved" doc:"Also what was over lately"`
}

// listAlerts lists what fires or is about to, and tells whether anybody looks.
func (a *API) listAlerts(ctx context.Context, in *listAlerts) (api.AlertList, error) {
	out := api.AlertList{Alerts: []api.Alert{}}
	found, err := alert.List(ctx, a.broker)
	if err != nil {
		return out, err
	}
	for _, one := range found {
		if in.Resolved || one.Status != alert.Resolved {
			out.Alerts = append(out.Alerts, viewAlert(one))
		}
	}
	beat, err := alert.Alive(ctx, a.broker)
	out.Alive, out.Evaluated, out.Every, out.Rules = err == nil, jsontime.At(beat.At), api.Duration(beat.Every), beat.Rules
	if errors.Is(err, driver.ErrNotFound) {
		err = nil
	}
	return out, err
}

func viewAlert(one alert.Alert) api.Alert {
	return api.Alert{Rule: one.Rule, Subject: one.Subject, Severity: string(one.Severity), Status: string(one.Status),
		Text: one.Text, Since: jsontime.At(one.Since), Fired: jsontime.At(one.Fired), Ended: jsontime.At(one.Ended),
		Notified: jsontime.At(one.Notified), Notices: one.Notices, Acknowledged: one.Acknowledged}
}

// ofOneAlert is how many entries of the history are looked through for those of one alert.
const ofOneAlert = 10_000

func (a *API) showAlert(ctx context.Context, in *input.AlertPath) (api.AlertShown, error) {
	one, err := alert.Get(ctx, a.broker, in.Rule, in.Subject)
	if err != nil {
		return api.AlertShown{}, err
	}
	out := api.AlertShown{Alert: viewAlert(one), History: []api.AlertEntry{}}
	all, err := alert.History(ctx, a.broker, ofOneAlert)
	for _, e := range all {
		if e.Rule == in.Rule && e.Subject == in.Subject {
			out.History = append(out.History, viewEntryOfAlerts(e))
		}
	}
	return out, err
}

type acknowledge struct {
	input.AlertPath
	Body api.Acknowledge
}

func (a *API) acknowledgeAlert(ctx context.Context, in *acknowledge, note *auth.Action) error {
	who := cmp.Or(in.Body.Who, auth.From(ctx).Name)
	note.Detail = in.Rule + " for " + in.Subject + ": " + who
	return alert.Acknowledge(ctx, a.broker, in.Rule, in.Subject, who)
}

type alertHistory struct {
	Limit int `query:"limit" default:"100" minimum:"1" maximum:"10000"`
}

func (a *API) alertHistory(ctx context.Context, in *alertHistory) (api.AlertHistory, error) {
	found, err := alert.History(ctx, a.broker, in.Limit)
	out := api.AlertHistory{Entries: make([]api.AlertEntry, len(found))}
	for i, e := range found {
		out.Entries[i] = viewEntryOfAlerts(e)
	}
	return out, err
}

func viewEntryOfAlerts(e alert.Entry) api.AlertEntry {
	return api.AlertEntry{At: jsontime.At(e.At), Rule: e.Rule, Subject: e.Subject, Severity: string(e.Severity),
		What: e.What, Text: e.Text, Messages: e.Messages}
}

// listSilences lists those of the broker, and where the server evaluates rules those of its configuration.
func (a *API) listSilences(ctx context.Context, _ *struct{}) (api.SilenceList, error) {
	read := func(ctx context.Context) ([]alert.Silence, error) { return alert.Silences(ctx, a.broker) }
	if a.o.Watch != nil {
		read = a.o.Watch.Silences
	}
	found, err := read(ctx)
	out := api.SilenceList{Silences: make([]api.Silence, len(found))}
	for i, s := range found {
		out.Silences[i] = api.Silence{ID: s.ID, Rule: s.Rule, Subject: s.Subject, Until: jsontime.At(s.Until), Who: s.Who,
			Comment: s.Comment}
	}
	return out, err
}

type addSilence struct{ Body api.NewSilence }

func (a *API) addSilence(ctx context.Context, in *addSilence, note *auth.Action) (api.Silence, error) {
	s := alert.Silence{Rule: in.Body.Rule, Subject: in.Body.Subject, Who: auth.From(ctx).Name, Comment: in.Body.Comment}
	d := time.Duration(in.Body.Duration)
	note.Detail = "rule " + cmp.Or(s.Rule, "*") + ", subject " + cmp.Or(s.Subject, "*") + ", " + d.String()
	id, err := alert.AddSilence(ctx, a.broker, s, d)
	return api.Silence{ID: id, Rule: s.Rule, Subject: s.Subject, Until: jsontime.At(time.Now().Add(d)), Who: s.Who,
		Comment: s.Comment}, err
}

type silencePath struct {
	ID string `path:"id" maxLength:"64"`
}

func (a *API) removeSilence(ctx context.Context, in *silencePath, note *auth.Action) error {
	note.Detail = in.ID
	return alert.RemoveSilence(ctx, a.broker, in.ID)
}

func (a *API) listAlertRules(ctx context.Context, _ *struct{}) (api.AlertRuleList, error) {
	out := api.AlertRuleList{Rules: []api.AlertRule{}, Figures: alert.Figures()}
	watch, err := a.needWatch()
	if err != nil {
		return out, err
	}
	found, err := watch.Rules(ctx)
	for _, r := range found {
		out.Rules = append(out.Rules, viewAlertRule(r))
	}
	return out, err
}

func viewAlertRule(r alert.KeptRule) api.AlertRule {
	return api.AlertRule{Name: r.Name, When: r.When, Threshold: r.Threshold, Severity: string(r.Severity),
		For: api.Duration(r.For), Cooldown: api.Duration(r.Cooldown), Channels: r.Channels, Text: r.Text, Action: r.Action,
		Topics: r.Topics, Groups: r.Groups, Disabled: r.Disabled, PromQL: r.PromQL, Kept: r.Kept}
}

type putAlertRule struct {
	input.AlertRulePath
	Body api.AlertRule
}

// putAlertRule keeps a rule in the broker, over a configured one of the same name.
func (a *API) putAlertRule(ctx context.Context, in *putAlertRule, note *auth.Action) (api.AlertRule, error) {
	note.Detail = in.Rule + ": " + in.Body.When
	watch, err := a.needWatch()
	if err != nil {
		return api.AlertRule{}, err
	}
	b := in.Body
	r := alert.Rule{Name: in.Rule, When: b.When, Threshold: b.Threshold, Severity: alert.Severity(b.Severity),
		For: time.Duration(b.For), Cooldown: time.Duration(b.Cooldown), Channels: b.Channels, Text: b.Text,
		Action: b.Action, Topics: b.Topics, Groups: b.Groups, Disabled: b.Disabled, PromQL: b.PromQL}
	return viewAlertRule(alert.KeptRule{Rule: r, Kept: true}), watch.PutRule(ctx, r)
}

func (a *API) deleteAlertRule(ctx context.Context, in *input.AlertRulePath, note *auth.Action) error {
	note.Detail = in.Rule
	watch, err := a.needWatch()
	if err != nil {
		return err
	}
	return watch.DeleteRule(ctx, in.Rule)
}

// testAlertRule sends a notice as if the rule fired.
func (a *API) testAlertRule(ctx context.Context, in *input.AlertRulePath, note *auth.Action) (api.Notification, error) {
	note.Detail = in.Rule
	watch, err := a.needWatch()
	if err != nil {
		return api.Notification{}, err
	}
	sent, err := watch.Test(ctx, in.Rule)
	if err != nil {
		return api.Notification{}, sayable(err)
	}
	receipt, err := sent.Receipt(ctx)
	return viewNotification(receipt), err
}

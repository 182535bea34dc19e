package admin

import (
	"cmp"
	"context"
	"errors"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/notify"
)

type sendNotification struct{ Body api.NewNotification }

// sendNotification queues a notification for the hubs that run, here or elsewhere.
func (a *API) sendNotification(ctx context.Context, in *sendNotification, note *auth.Action) (api.Notification, error) {
	b := in.Body
	m := notify.NewMessage(b.Title, b.Body).WithID(b.ID).WithFormat(notify.Format(b.Format)).
		WithPriority(priorities[b.Priority]).WithScheduledTime(timeOf(b.At)).AddTarget(targetsOf(b.Targets)...)
	m.Template, m.Variables, m.Data, m.Metadata = b.Template, b.Variables, b.Data, b.Metadata
	if m.Template != "" && m.Title+m.Body != "" {
		return api.Notification{}, driver.NewError(driver.ErrInvalid,
			"the notification has a template beside a title or a body", "leave one of them out", nil)
	}
	note.Detail, note.Count = cmp.Or(b.Title, b.Template), int64(len(b.Targets))
	return a.send(ctx, m)
}

func targetsOf(all []api.NotifyTarget) []notify.Target {
	var found []notify.Target
	for _, t := range all {
		found = append(found, notify.Target{Channel: t.Channel, To: t.To, Fallbacks: targetsOf(t.Fallbacks)})
	}
	return found
}

func (a *API) send(ctx context.Context, m *notify.Message) (api.Notification, error) {
	sender, err := notify.NewSender(ctx, a.broker, a.o.NotifyTopic)
	if err != nil {
		return api.Notification{}, err
	}
	sent, err := sender.Send(ctx, m)
	if err != nil {
		return api.Notification{}, sayable(err)
	}
	receipt, err := sent.Receipt(ctx)
	return viewNotification(receipt), err
}

// sayable makes of a channel's error one whose text clients are told.
func sayable(err error) error {
	var e *notify.Error
	if errors.As(err, &e) {
		return driver.NewError(driver.ErrInvalid, e.Text, e.Hint, nil)
	}
	return err
}

type notificationPath struct {
	ID string `path:"id" maxLength:"64"`
}

func (a *API) showNotification(ctx context.Context, in *notificationPath) (api.Notification, error) {
	receipt, err := notify.Get(ctx, a.broker, in.ID)
	return viewNotification(receipt), err
}

func (a *API) cancelNotification(ctx context.Context, in *notificationPath, note *auth.Action) (
	api.CancelledNotification, error) {
	n, err := notify.Cancel(ctx, a.broker, in.ID)
	note.Detail, note.Count = in.ID, int64(n)
	return api.CancelledNotification{Cancelled: n}, err
}

func viewNotification(r notify.Receipt) api.Notification {
	v := api.Notification{ID: r.MessageID, Status: string(r.Status), Total: r.Total, Succeeded: r.Succeeded,
		Failed: r.Failed, Cancelled: r.Cancelled, Targets: make([]api.NotificationTarget, len(r.Targets))}
	for i, t := range r.Targets {
		v.Targets[i] = api.NotificationTarget{Channel: t.Channel, To: t.To, Status: string(t.Status), Digest: t.Digest,
			Code: string(t.Code), Error: t.Error, Attempts: t.Attempts, At: jsontime.At(t.At), Took: api.Duration(t.Duration)}
		if t.Reached != nil {
			v.Targets[i].ReachedChannel, v.Targets[i].ReachedTo = t.Reached.Channel, t.Reached.To
			v.Targets[i].VendorID = t.Reached.MessageID
		}
	}
	return v
}

func (a *API) listChannels(ctx context.Context, _ *struct{}) (api.NotifyChannelList, error) {
	found, err := notify.Announced(ctx, a.broker, a.o.NotifyTopic)
	out := api.NotifyChannelList{Channels: make([]api.NotifyChannel, len(found))}
	for i, c := range found {
		out.Channels[i] = viewChannel(c)
	}
	return out, err
}

func viewChannel(c notify.ChannelInfo) api.NotifyChannel {
	v := api.NotifyChannel{Name: c.Name, Destinations: c.Destinations, Attaches: c.Attaches, Processes: c.Processes,
		Sent: c.Stats.Sent, Failed: c.Stats.Failed, Retried: c.Stats.Retried, Limited: c.Stats.Limited}
	for _, r := range c.Limits.Rates {
		v.Rates = append(v.Rates, api.NotifyRate{Sends: r.Sends, Per: api.Duration(r.Per)})
	}
	for _, f := range c.Limits.Formats {
		v.Formats = append(v.Formats, string(f))
	}
	if c.Last != nil {
		v.LastAt, v.LastCode, v.LastError = jsontime.At(c.Last.At), string(c.Last.Code), c.Last.Error
	}
	return v
}

type testChannel struct {
	Channel string `path:"channel" maxLength:"128"`
	Body    api.TestChannel
}

// testChannel sends a test, once. Its receipt tells what became of it.
func (a *API) testChannel(ctx context.Context, in *testChannel, note *auth.Action) (api.Notification, error) {
	note.Detail = in.Channel
	return a.send(ctx, notify.NewMessage("Test", "Ferry can send to "+in.Channel+".").WithRetry(notify.NoRetry).
		AddTarget(notify.Target{Channel: in.Channel, To: in.Body.To}))
}

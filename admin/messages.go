package admin

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

func isGone(err error) bool { return errors.Is(err, driver.ErrNotFound) }

type listMessages struct {
	input.TopicPath
	input.Paging
	State string `query:"state" enum:"delayed,held,ready,inflight,waiting,dead,invalid,done" doc:"One state; all of them by default"`
	Group string `query:"group" doc:"One group; all of them by default" maxLength:"128"`
	Key   string `query:"key" doc:"Only messages with this key" maxLength:"256"`
	Where string `query:"where" doc:"A condition in the filter language" maxLength:"4096"`
}

// listMessages lists and searches the messages of a topic. It looks at a bounded number of them, and says at how many.
func (a *API) listMessages(ctx context.Context, in *listMessages) (api.MessagePage, error) {
	where, err := a.filter(ctx, in.Topic, in.Where)
	if err != nil {
		return api.MessagePage{}, err
	}
	s, err := a.newSearch(ctx, in, where)
	if err != nil {
		return api.MessagePage{}, err
	}
	if err := s.run(ctx); err != nil {
		return api.MessagePage{}, err
	}
	page := api.MessagePage{Messages: a.viewEntries(ctx, in.Topic, s.found), Scanned: s.at.Scanned, Total: s.at.Total,
		Faulty: s.faulty, Next: s.next()}
	if s.fault != nil {
		page.Fault, _ = tell(s.fault)
	}
	return page, nil
}

// filter reads a condition, and refuses one on what whoever asks may not see. An empty one is none.
func (a *API) filter(ctx context.Context, topic, text string) (*deadletter.Filter, error) {
	if text == "" {
		return nil, nil
	}
	f, err := deadletter.ParseFilter(text)
	if err != nil {
		return nil, err
	}
	return f, a.maskOf(topic).asks(f, auth.From(ctx).May(auth.Payload, topic))
}

func (a *API) showMessage(ctx context.Context, in *input.MessagePath) (api.Views, error) {
	views, err := a.driver.Get(ctx, in.Target())
	if err != nil {
		return api.Views{}, err
	}
	out := api.Views{Messages: make([]api.Message, len(views))}
	for i, e := range views {
		out.Messages[i] = a.viewWhole(ctx, in.Topic, e)
	}
	return out, nil
}

// maxPublish is the most bytes of a request that publishes; the broker bounds the message itself.
const maxPublish = 16 << 20

type publishMessage struct {
	input.TopicPath
	Body api.NewMessage
}

// publishMessage publishes one message, to try something out.
func (a *API) publishMessage(ctx context.Context, in *publishMessage, note *auth.Action) (api.Published, error) {
	note.Topic, note.Count = in.Topic, 1
	m, err := messageOf(in.Topic, in.Body)
	if err != nil {
		return api.Published{}, err
	}
	r, err := a.broker.Publish(ctx, m)
	note.Detail = r.ID
	return viewReceipt(in.Topic, r), err
}

func viewReceipt(topic string, r ferry.Receipt) api.Published {
	return api.Published{ID: r.ID, Ref: refText(r.Ref), Topic: topic, Duplicate: r.Duplicate, Spooled: r.Spooled}
}

var priorities = map[string]ferry.Lane{"": ferry.Normal, "low": ferry.Low, "normal": ferry.Normal, "high": ferry.High,
	"urgent": ferry.Urgent}

// messageOf returns the message that a request describes.
func messageOf(topic string, n api.NewMessage) (*ferry.Message, error) {
	body, err := bodyOr(n.Body, n.BodyBase64)
	if err != nil {
		return nil, err
	}
	m := &ferry.Message{Topic: topic, ID: n.ID, OwnID: n.ID != "", Key: n.Key, Body: body, ContentType: n.ContentType,
		Headers:  n.Headers,
		Priority: priorities[n.Priority], Delay: time.Duration(n.Delay), TTL: time.Duration(n.TTL), DedupID: n.Dedup,
		DedupWindow: time.Duration(n.DedupWindow),
		MaxAttempts: n.MaxAttempts}
	if n.At != nil {
		m.At = n.At.Time
	}
	return m, nil
}

// bodyOr returns the one of text and bytes that is given.
func bodyOr(text *string, bytes []byte) ([]byte, error) {
	if text != nil && bytes != nil {
		return nil, driver.NewError(driver.ErrInvalid, "both body and body_base64 are given", "use one of them", nil)
	}
	if text != nil {
		return []byte(*text), nil
	}
	return bytes, nil
}

type rescheduleMessage struct {
	input.MessagePath
	Body api.Reschedule
}

// rescheduleMessage makes a message that is delayed or waits for a retry due at another time; with no delay it runs
// now.
func (a *API) rescheduleMessage(ctx context.Context, in *rescheduleMessage, note *auth.Action) error {
	note.Topic, note.Group, note.Detail, note.Count = in.Topic, in.Group, in.ID, 1
	if in.Body.After < 0 {
		return driver.NewError(driver.ErrInvalid, "after is negative", "use zero for now", nil)
	}
	t, err := a.alive(ctx, in.Target())
	if err != nil {
		return err
	}
	return a.driver.Move(ctx, []driver.Move{{Target: t, After: time.Duration(in.Body.After)}})[0]
}

// alive returns the target with the ref of a message that is no dead letter: those are replayed, not rescheduled.
func (a *API) alive(ctx context.Context, t driver.Target) (driver.Target, error) {
	views, err := a.driver.Get(ctx, t)
	if err != nil {
		return t, err
	}
	for _, e := range views {
		if e.State == driver.StateDead || e.State == driver.StateInvalid {
			return t, driver.NewError(driver.ErrConflict, "the message is a dead letter",
				"replay it: POST /api/v1/dead/{topic}/{group}/{id}/replay", nil)
		}
		t.Ref = e.Ref
	}
	return t, nil
}

// cancelMessage removes a message that waits; with a group for that group alone.
func (a *API) cancelMessage(ctx context.Context, in *input.MessagePath, note *auth.Action) error {
	note.Topic, note.Group, note.Detail, note.Count = in.Topic, in.Group, in.ID, 1
	return a.driver.Delete(ctx, []driver.Target{in.Target()})[0]
}

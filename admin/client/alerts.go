package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/ferrymq/ferry/admin/api"
)

// Alerts returns what fires, and with resolved also what was over lately.
func (c *Client) Alerts(ctx context.Context, resolved bool) (api.AlertList, error) {
	v := url.Values{}
	if resolved {
		v.Set("resolved", "true")
	}
	return get[api.AlertList](ctx, c, "/alerts", v)
}

func alertPath(rule, subject, rest string) string {
	return "/alerts/" + url.PathEscape(rule) + "/" + url.PathEscape(subject) + rest
}

// Alert returns one alert, with what happened to it.
func (c *Client) Alert(ctx context.Context, rule, subject string) (api.AlertShown, error) {
	return get[api.AlertShown](ctx, c, alertPath(rule, subject, ""), nil)
}

// Acknowledge says who takes care of an alert.
func (c *Client) Acknowledge(ctx context.Context, rule, subject string, a api.Acknowledge) error {
	return c.do(ctx, http.MethodPost, alertPath(rule, subject, "/ack"), a)
}

// AlertHistory returns what happened lately, the newest first; limit 0 is what the server chooses.
func (c *Client) AlertHistory(ctx context.Context, limit int) ([]api.AlertEntry, error) {
	all, err := get[api.AlertHistory](ctx, c, "/alert-history", atMost(limit))
	return all.Entries, err
}

func atMost(limit int) url.Values {
	v := url.Values{}
	if limit != 0 {
		v.Set("limit", strconv.Itoa(limit))
	}
	return v
}

// AlertRules returns the rules that are evaluated, and the figures that rules may use.
func (c *Client) AlertRules(ctx context.Context) (api.AlertRuleList, error) {
	return get[api.AlertRuleList](ctx, c, "/alert-rules", nil)
}

func alertRulePath(rule, rest string) string { return "/alert-rules/" + url.PathEscape(rule) + rest }

// PutAlertRule keeps a rule in the broker, over a configured one of its name.
func (c *Client) PutAlertRule(ctx context.Context, name string, r api.AlertRule) (out api.AlertRule, err error) {
	err = c.call(ctx, http.MethodPut, alertRulePath(name, ""), nil, r, &out)
	return out, err
}

// DeleteAlertRule removes a rule from the broker. A configured one of its name counts again.
func (c *Client) DeleteAlertRule(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, alertRulePath(name, ""), nil)
}

// TestAlertRule sends a notice as if a rule fired.
func (c *Client) TestAlertRule(ctx context.Context, name string) (api.Notification, error) {
	return post[api.Notification](ctx, c, alertRulePath(name, "/test"), nil)
}

// Silences returns the silences that last.
func (c *Client) Silences(ctx context.Context) ([]api.Silence, error) {
	all, err := get[api.SilenceList](ctx, c, "/silences", nil)
	return all.Silences, err
}

// AddSilence keeps notices back for a time.
func (c *Client) AddSilence(ctx context.Context, s api.NewSilence) (api.Silence, error) {
	return post[api.Silence](ctx, c, "/silences", s)
}

// RemoveSilence ends a silence.
func (c *Client) RemoveSilence(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/silences/"+url.PathEscape(id), nil)
}

// Notify queues a notification.
func (c *Client) Notify(ctx context.Context, n api.NewNotification) (api.Notification, error) {
	return post[api.Notification](ctx, c, "/notifications", n)
}

// Notification tells what became of each target.
func (c *Client) Notification(ctx context.Context, id string) (api.Notification, error) {
	return get[api.Notification](ctx, c, "/notifications/"+url.PathEscape(id), nil)
}

// CancelNotification calls a notification back, and returns how many targets are spared.
func (c *Client) CancelNotification(ctx context.Context, id string) (int, error) {
	out, err := post[api.CancelledNotification](ctx, c, "/notifications/"+url.PathEscape(id)+"/cancel", nil)
	return out.Cancelled, err
}

// Channels returns the channels of the hubs that run.
func (c *Client) Channels(ctx context.Context) ([]api.NotifyChannel, error) {
	all, err := get[api.NotifyChannelList](ctx, c, "/channels", nil)
	return all.Channels, err
}

// TestChannel sends a test to one destination.
func (c *Client) TestChannel(ctx context.Context, channel string, t api.TestChannel) (api.Notification, error) {
	return post[api.Notification](ctx, c, "/channels/"+url.PathEscape(channel)+"/test", t)
}

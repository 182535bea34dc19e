package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/ferrymq/ferry/admin/api"
)

// Identity tells who asks, and what they may do.
func (c *Client) Identity(ctx context.Context) (api.Identity, error) {
	return get[api.Identity](ctx, c, "/identity", nil)
}

// Health returns a verdict on the whole system, with reasons.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	return get[api.Health](ctx, c, "/health", nil)
}

// Figures returns counts and rates of the queues of a topic, or without one of all.
func (c *Client) Figures(ctx context.Context, topic string) (api.Figures, error) {
	return get[api.Figures](ctx, c, "/figures", ofTopic(topic))
}

func ofTopic(topic string) url.Values {
	v := url.Values{}
	if topic != "" {
		v.Set("topic", topic)
	}
	return v
}

// Series returns figures over time, of a topic or of a group of it: the last 5m or 24h, as span says.
func (c *Client) Series(ctx context.Context, topic, group, span string) (api.Series, error) {
	v := url.Values{}
	if group != "" {
		v.Set("group", group)
	}
	if span != "" {
		v.Set("span", span)
	}
	return get[api.Series](ctx, c, topicPath(topic, "/series"), v)
}

// Scale tells how many instances a group needs, between least and most.
func (c *Client) Scale(ctx context.Context, topic, group string, least, most int) (api.Scale, error) {
	v := url.Values{"min": {strconv.Itoa(least)}, "max": {strconv.Itoa(most)}}
	return get[api.Scale](ctx, c, "/scale/"+url.PathEscape(topic)+"/"+url.PathEscape(group), v)
}

// Ticks tells when a spec ticks next; count 0 is as often as the server chooses.
func (c *Client) Ticks(ctx context.Context, spec, zone string, count int) (api.Ticks, error) {
	v := url.Values{"spec": {spec}}
	if zone != "" {
		v.Set("zone", zone)
	}
	if count != 0 {
		v.Set("count", strconv.Itoa(count))
	}
	return get[api.Ticks](ctx, c, "/ticks", v)
}

// Audit looks at every message of a topic, and with Fix mends what is wrong.
func (c *Client) Audit(ctx context.Context, topic string, a api.AuditTopic) (api.Operation, error) {
	return post[api.Operation](ctx, c, topicPath(topic, "/audit"), a)
}

// Member returns one process.
func (c *Client) Member(ctx context.Context, member string) (api.Member, error) {
	return get[api.Member](ctx, c, "/members/"+url.PathEscape(member), nil)
}

// CheckKey tells whether a message of a key would pass now.
func (c *Client) CheckKey(ctx context.Context, limit, key string) (api.LimitVerdict, error) {
	return get[api.LimitVerdict](ctx, c, keyPath(limit, key, "/check"), nil)
}

// LimitChanges returns who changed what of limits and breakers, the newest first; limit 0 is what the server chooses.
func (c *Client) LimitChanges(ctx context.Context, limit int) ([]api.LimitChange, error) {
	all, err := get[api.LimitChanges](ctx, c, "/limits/changes", atMost(limit))
	return all.Changes, err
}

// User returns one user.
func (c *Client) User(ctx context.Context, name string) (api.User, error) {
	return get[api.User](ctx, c, userPath(name, ""), nil)
}

// VerifyActions tells whether the chain of actions is whole.
func (c *Client) VerifyActions(ctx context.Context) (api.ActionVerdict, error) {
	return get[api.ActionVerdict](ctx, c, "/actions/verify", nil)
}

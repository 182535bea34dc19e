package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/admin/api"
)

// Page says where a listing goes on, and how far. The zero Page is the first, of the size that the server chooses.
type Page struct {
	Cursor string // next of an earlier page
	Limit  int
}

func (p Page) values() url.Values {
	v := url.Values{}
	if p.Cursor != "" {
		v.Set("cursor", p.Cursor)
	}
	if p.Limit != 0 {
		v.Set("limit", strconv.Itoa(p.Limit))
	}
	return v
}

// get asks for something.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (out T, err error) {
	err = c.call(ctx, http.MethodGet, path, query, nil, &out)
	return out, err
}

// post has something done that has an answer.
func post[T any](ctx context.Context, c *Client, path string, body any) (out T, err error) {
	err = c.call(ctx, http.MethodPost, path, nil, body, &out)
	return out, err
}

func (c *Client) do(ctx context.Context, method, path string, body any) error {
	return c.call(ctx, method, path, nil, body, nil)
}

func topicPath(topic, rest string) string { return "/topics/" + url.PathEscape(topic) + rest }

// Operations returns a page of the operations; with open only those that have not ended.
func (c *Client) Operations(ctx context.Context, p Page, open bool) (api.OperationPage, error) {
	v := p.values()
	if open {
		v.Set("open", "true")
	}
	return get[api.OperationPage](ctx, c, "/operations", v)
}

// Operation returns one operation.
func (c *Client) Operation(ctx context.Context, id string) (api.Operation, error) {
	return get[api.Operation](ctx, c, "/operations/"+url.PathEscape(id), nil)
}

// CancelOperation ends an operation. What it has done stays done.
func (c *Client) CancelOperation(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodPost, "/operations/"+url.PathEscape(id)+"/cancel", nil)
}

// WaitOperation asks each second, and returns an operation when it has ended.
func (c *Client) WaitOperation(ctx context.Context, id string) (api.Operation, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		op, err := c.Operation(ctx, id)
		if err != nil || op.Ended != nil {
			return op, err
		}
		select {
		case <-ctx.Done():
			return op, ctx.Err()
		case <-tick.C:
		}
	}
}

// Replay brings dead letters back to work.
func (c *Client) Replay(ctx context.Context, r api.ReplayMany) (api.Operation, error) {
	return post[api.Operation](ctx, c, "/dead/replay", r)
}

// Remove deletes dead letters for good.
func (c *Client) Remove(ctx context.Context, r api.RemoveMany) (api.Operation, error) {
	return post[api.Operation](ctx, c, "/dead/remove", r)
}

// Expire deletes the oldest dead letters beyond limits.
func (c *Client) Expire(ctx context.Context, r api.ExpireMany) (api.Operation, error) {
	return post[api.Operation](ctx, c, "/dead/expire", r)
}

// Purge deletes messages of a topic that wait.
func (c *Client) Purge(ctx context.Context, topic string, p api.Purge) (api.Operation, error) {
	return post[api.Operation](ctx, c, topicPath(topic, "/purge"), p)
}

// Reschedule makes messages of a topic that wait due at another time.
func (c *Client) Reschedule(ctx context.Context, topic string, r api.RescheduleMany) (api.Operation, error) {
	return post[api.Operation](ctx, c, topicPath(topic, "/reschedule"), r)
}

// Reset makes a group start again from a position.
func (c *Client) Reset(ctx context.Context, topic, group string, r api.Reset) (api.Operation, error) {
	return post[api.Operation](ctx, c, topicPath(topic, "/groups/"+url.PathEscape(group)+"/reset"), r)
}

// Members returns the processes that joined.
func (c *Client) Members(ctx context.Context) ([]api.Member, error) {
	all, err := get[api.Members](ctx, c, "/members", nil)
	return all.Members, err
}

// Tell has a member obey a command.
func (c *Client) Tell(ctx context.Context, member string, command api.Command) error {
	return c.do(ctx, http.MethodPost, "/members/"+url.PathEscape(member)+"/commands", command)
}

// Schedules returns a page of the schedules whose names begin so.
func (c *Client) Schedules(ctx context.Context, p Page, prefix string) (api.SchedulePage, error) {
	v := p.values()
	if prefix != "" {
		v.Set("prefix", prefix)
	}
	return get[api.SchedulePage](ctx, c, "/schedules", v)
}

func schedulePath(name, rest string) string { return "/schedules/" + url.PathEscape(name) + rest }

// Schedule returns one schedule.
func (c *Client) Schedule(ctx context.Context, name string) (api.Schedule, error) {
	return get[api.Schedule](ctx, c, schedulePath(name, ""), nil)
}

// PutSchedule makes a schedule, or changes the one of that name.
func (c *Client) PutSchedule(ctx context.Context, name string, s api.PutSchedule) (out api.Schedule, err error) {
	err = c.call(ctx, http.MethodPut, schedulePath(name, ""), nil, s, &out)
	return out, err
}

// DeleteSchedule removes a schedule.
func (c *Client) DeleteSchedule(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, schedulePath(name, ""), nil)
}

// PauseSchedule stops a schedule.
func (c *Client) PauseSchedule(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodPost, schedulePath(name, "/pause"), nil)
}

// ResumeSchedule lets a paused schedule tick again.
func (c *Client) ResumeSchedule(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodPost, schedulePath(name, "/resume"), nil)
}

// TriggerSchedule publishes the message of a schedule now.
func (c *Client) TriggerSchedule(ctx context.Context, name string) (api.Published, error) {
	return post[api.Published](ctx, c, schedulePath(name, "/trigger"), nil)
}

// LimitKeys returns a page of the keys that are blocked, overridden or whitelisted: kind says which.
func (c *Client) LimitKeys(ctx context.Context, p Page, kind string) (api.LimitKeys, error) {
	v := p.values()
	v.Set("kind", kind)
	return get[api.LimitKeys](ctx, c, "/limits", v)
}

func keyPath(limit, key, rest string) string {
	return "/limits/" + url.PathEscape(limit) + "/keys/" + url.PathEscape(key) + rest
}

// LimitKey returns everything about one key of a limit.
func (c *Client) LimitKey(ctx context.Context, limit, key string) (api.LimitKey, error) {
	return get[api.LimitKey](ctx, c, keyPath(limit, key, ""), nil)
}

// Block keeps a key out.
func (c *Client) Block(ctx context.Context, limit, key string, b api.BlockKey) error {
	return c.do(ctx, http.MethodPut, keyPath(limit, key, "/block"), b)
}

// Unblock lets a key in again.
func (c *Client) Unblock(ctx context.Context, limit, key, reason string) error {
	return c.because(ctx, http.MethodDelete, keyPath(limit, key, "/block"), reason)
}

// because does something to a key, with a reason for the list of changes.
func (c *Client) because(ctx context.Context, method, path, reason string) error {
	return c.call(ctx, method, path, url.Values{"reason": {reason}}, nil, nil)
}

// Override gives a key a rule of its own for some time.
func (c *Client) Override(ctx context.Context, limit, key string, o api.OverrideKey) error {
	return c.do(ctx, http.MethodPut, keyPath(limit, key, "/override"), o)
}

// ClearOverride ends an override before its time.
func (c *Client) ClearOverride(ctx context.Context, limit, key, reason string) error {
	return c.because(ctx, http.MethodDelete, keyPath(limit, key, "/override"), reason)
}

// Whitelist lets a key pass always.
func (c *Client) Whitelist(ctx context.Context, limit, key, reason string) error {
	return c.because(ctx, http.MethodPut, keyPath(limit, key, "/whitelist"), reason)
}

// Unwhitelist makes the rules hold for a key again.
func (c *Client) Unwhitelist(ctx context.Context, limit, key, reason string) error {
	return c.because(ctx, http.MethodDelete, keyPath(limit, key, "/whitelist"), reason)
}

// LimitRules returns the rules that operators set for limits and their groups.
func (c *Client) LimitRules(ctx context.Context) ([]api.LimitRule, error) {
	all, err := get[api.LimitRules](ctx, c, "/limits/rules", nil)
	return all.Rules, err
}

// SetRule gives a limit, or with a group that group of it, another rule in every process.
func (c *Client) SetRule(ctx context.Context, limit, group string, r api.SetRule) error {
	return c.call(ctx, http.MethodPut, "/limits/"+url.PathEscape(limit)+"/rule", url.Values{"group": {group}}, r, nil)
}

// ClearRule makes the rule hold again that programs give.
func (c *Client) ClearRule(ctx context.Context, limit, group, reason string) error {
	return c.call(ctx, http.MethodDelete, "/limits/"+url.PathEscape(limit)+"/rule",
		url.Values{"group": {group}, "reason": {reason}}, nil, nil)
}

// Breakers returns the breakers of all processes.
func (c *Client) Breakers(ctx context.Context) ([]api.Breaker, error) {
	all, err := get[api.Breakers](ctx, c, "/breakers", nil)
	return all.Breakers, err
}

// ForceBreaker makes a breaker open or closed everywhere, or leaves it to itself.
func (c *Client) ForceBreaker(ctx context.Context, name string, f api.ForceBreaker) error {
	return c.do(ctx, http.MethodPut, "/breakers/"+url.PathEscape(name), f)
}

// Users returns a page of the users.
func (c *Client) Users(ctx context.Context, p Page) (api.UserPage, error) {
	return get[api.UserPage](ctx, c, "/users", p.values())
}

// SetUser makes a user, or changes its roles or password.
func (c *Client) SetUser(ctx context.Context, name string, u api.SetUser) (api.User, error) {
	var out api.User
	err := c.call(ctx, http.MethodPut, userPath(name, ""), nil, u, &out)
	return out, err
}

func userPath(name, rest string) string { return "/users/" + url.PathEscape(name) + rest }

// RemoveUser removes a user, and ends its sessions.
func (c *Client) RemoveUser(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, userPath(name, ""), nil)
}

// DisableUser keeps a user out, and ends its sessions.
func (c *Client) DisableUser(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodPost, userPath(name, "/disable"), nil)
}

// EnableUser lets a user log in again.
func (c *Client) EnableUser(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodPost, userPath(name, "/enable"), nil)
}

// Totals returns the figures of all topics together over time: the last 5m or 24h, as span says.
func (c *Client) Totals(ctx context.Context, span string) (api.Series, error) {
	return get[api.Series](ctx, c, "/series", url.Values{"span": {span}})
}

// Masks returns what is hidden of messages, from everybody.
func (c *Client) Masks(ctx context.Context) (api.MaskList, error) {
	return get[api.MaskList](ctx, c, "/masks", nil)
}

// WeComAccounts returns the accounts of customer service that the server pulls.
func (c *Client) WeComAccounts(ctx context.Context) (api.WeComAccounts, error) {
	return get[api.WeComAccounts](ctx, c, "/wecom/accounts", nil)
}

// Tokens returns a page of the tokens that are good.
func (c *Client) Tokens(ctx context.Context, p Page) (api.TokenPage, error) {
	return get[api.TokenPage](ctx, c, "/tokens", p.values())
}

// CreateToken makes a token. Its text is told this once.
func (c *Client) CreateToken(ctx context.Context, t api.CreateToken) (api.CreatedToken, error) {
	return post[api.CreatedToken](ctx, c, "/tokens", t)
}

// RevokeToken ends a token at once.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/tokens/"+url.PathEscape(id), nil)
}

// Actions returns a page of what operators did, the newest first.
func (c *Client) Actions(ctx context.Context, p Page) (api.ActionPage, error) {
	return get[api.ActionPage](ctx, c, "/actions", p.values())
}

package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/driver"
)

// events are what a stream may send, each with what reads its data.
type events map[string]func(data []byte) error

// decoded reads the data of an event for a function.
func decoded[T any](take func(T) error) func([]byte) error {
	return func(data []byte) error {
		var v T
		if err := json.Unmarshal(data, &v); err != nil {
			return driver.NewError(ferry.ErrInvalid, "the event is not that of an admin API", "check the version of the server",
				err)
		}
		return take(v)
	}
}

// follow reads a stream until it ends, ctx does, or a function returns an error, which it returns. When ctx ended it
// returns nil.
func (c *Client) follow(ctx context.Context, path string, query url.Values, on events) error {
	q, err := c.request(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	live := *c.http
	live.Timeout = 0 // a stream lasts
	resp, err := live.Do(q)
	if err != nil {
		return ended(ctx, notReached(ctx, http.MethodGet, err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusBadRequest {
		return read(resp, nil)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAnswer)
	name := ""
	for lines.Scan() {
		if rest, ok := bytes.CutPrefix(lines.Bytes(), []byte("event: ")); ok {
			name = string(rest)
			continue
		}
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if take := on[name]; ok && take != nil {
			if err := take(data); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return ended(ctx, driver.NewError(ferry.ErrNotApplied, "the stream broke off", "follow again", err))
	}
	return nil
}

// ended returns the error of a stream, or nil if the caller wanted its end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Tail calls message for each message that is published to a topic, and skipped for those that it could not see, until
// ctx ends or one of them returns an error. Messages that are settled quickly may not be seen.
func (c *Client) Tail(ctx context.Context, topic string, message func(api.Message) error,
	skipped func(api.Skipped) error) error {
	return c.follow(ctx, topicPath(topic, "/tail"), nil, events{"message": decoded(message), "skipped": decoded(skipped)})
}

// FollowFigures calls figures whenever the queues of a topic, or without one all queues, were looked at.
func (c *Client) FollowFigures(ctx context.Context, topic string, figures func(api.Figures) error) error {
	return c.follow(ctx, "/figures/events", ofTopic(topic), events{"figures": decoded(figures)})
}

// FollowOperations calls operation for those that are open, and then for each that changes.
func (c *Client) FollowOperations(ctx context.Context, operation func(api.Operation) error) error {
	return c.follow(ctx, "/operations/events", nil, events{"operation": decoded(operation)})
}

// FollowOperation calls operation whenever one has changed, until it has ended.
func (c *Client) FollowOperation(ctx context.Context, id string, operation func(api.Operation) error) error {
	return c.follow(ctx, "/operations/"+url.PathEscape(id)+"/events", nil, events{"operation": decoded(operation)})
}

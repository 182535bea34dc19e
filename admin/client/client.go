// Package client asks the admin API of a Ferry server for what a broker itself does not have: operations, members,
// schedules, limits, alerts, notifications, users, tokens, actions and live streams, in the types of package admin/api.
//
//	c, err := client.New(client.Options{URL: "https://ferry.example", Token: token})
//	which := api.SelectLetters{Topic: "orders", Where: `reason == "timeout"`}
//	op, err := c.Replay(ctx, api.ReplayMany{SelectLetters: which})
//	op, err = c.WaitOperation(ctx, op.ID)
//
// It links nothing but the standard library. Errors are of the kinds that package ferry names, for
// errors.Is, and errors.As finds the *api.Problem that the server answered with.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/driver"
)

// Options of a Client.
type Options struct {
	// URL of the server, with the path that it is served below, if any. Required.
	URL string
	// Token is sent with every request. Defaults to none, which a server refuses.
	Token string
	// HTTP makes the requests. Defaults to a client with a timeout of 30 s.
	HTTP *http.Client
	// Insecure allows a token over plain HTTP to another machine, where everybody on the way reads it.
	Insecure bool
}

// Client asks a server. It is safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// maxAnswer is the most that is read of one answer.
const maxAnswer = 64 << 20

// New checks the options and returns a Client. It asks nothing.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, driver.NewError(ferry.ErrInvalid, "this is no URL of a server",
			"write it like https://ferry.example:7070, without user or query", nil)
	}
	if u.Scheme == "http" && o.Token != "" && !o.Insecure && !local(u.Hostname()) {
		return nil, driver.NewError(ferry.ErrInvalid, "the token would cross the network in clear",
			"use https, or set Insecure", nil)
	}
	c := &Client{base: strings.TrimSuffix(u.String(), "/"), token: o.Token, http: o.HTTP}
	if c.http == nil {
		c.http = &http.Client{Timeout: 30 * time.Second}
	}
	return c, nil
}

// local reports whether a host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// call sends a request and reads the answer into out. Nil bodies and answers are none.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body, out any) error {
	q, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(q)
	if err != nil {
		return notReached(ctx, method, err)
	}
	defer func() { _ = resp.Body.Close() }()
	return read(resp, out)
}

func (c *Client) request(ctx context.Context, method, path string, query url.Values, body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, driver.NewError(ferry.ErrInvalid, "the request cannot be written as JSON", "see what it is made of", err)
		}
		content = bytes.NewReader(data)
	}
	target := c.base + api.Base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	q, err := http.NewRequestWithContext(ctx, method, target, content)
	if err != nil {
		return nil, driver.NewError(ferry.ErrInvalid, "the request cannot be made", "see its names", err)
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		q.Header.Set("Authorization", "Bearer "+c.token)
	}
	return q, nil
}

// notReached is the error of a request without an answer. One that only looks has changed nothing.
func notReached(ctx context.Context, method string, err error) error {
	if ctx.Err() != nil && method == http.MethodGet {
		return ctx.Err()
	}
	kind := ferry.ErrUnknown
	if method == http.MethodGet {
		kind = ferry.ErrNotApplied
	}
	return driver.NewError(kind, "the server did not answer", "check that it runs, and the URL", err)
}

func read(resp *http.Response, out any) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return driver.NewError(ferry.ErrUnknown, "the answer broke off", "look whether it was done", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return problem(resp.StatusCode, data)
	}
	if out == nil || len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return driver.NewError(ferry.ErrInvalid, "the answer is not that of an admin API",
			"check the URL, and the version of the server", err)
	}
	return nil
}

// kinds are the errors of package ferry that codes stand for.
var kinds = map[string]error{
	api.CodeInvalid: ferry.ErrInvalid, api.CodeMalformed: ferry.ErrInvalid, api.CodeMethod: ferry.ErrInvalid,
	api.CodeMediaType: ferry.ErrInvalid,
	api.CodeNobody:    ferry.ErrRefused, api.CodeForbidden: ferry.ErrRefused, api.CodeNotFound: ferry.ErrNotFound,
	api.CodeConflict: ferry.ErrConflict,
	api.CodeTooLarge: ferry.ErrTooLarge, api.CodeFull: ferry.ErrFull, api.CodeUnsupported: ferry.ErrUnsupported,
	api.CodeUnavailable: ferry.ErrNotApplied,
}

// problem returns the error of an answer that is none.
func problem(status int, data []byte) error {
	var p api.Problem
	if err := json.Unmarshal(data, &p); err != nil || p.Code == "" {
		return driver.NewError(ferry.ErrUnknown, fmt.Sprintf("the server answered %d %s", status, http.StatusText(status)),
			"check the URL: something else may answer there", nil)
	}
	kind, ok := kinds[p.Code]
	if !ok {
		kind = ferry.ErrUnknown
	}
	return &answered{driver.NewError(kind, p.Detail, p.Hint, nil), &p}
}

// answered is a problem of the server as an error of Ferry.
type answered struct {
	err     *driver.Error
	problem *api.Problem
}

// Error returns what happened, and the hint.
func (e *answered) Error() string { return e.err.Error() }

// Unwrap makes errors.Is see the kind, and errors.As the problem.
func (e *answered) Unwrap() []error { return []error{e.err, e.problem} }

// Request makes a request of one's own, below /api/v1: of routes that have no method here. Body and answer may be nil.
func (c *Client) Request(ctx context.Context, method, path string, query url.Values, body, answer any) error {
	if !strings.HasPrefix(path, "/") {
		return driver.NewError(ferry.ErrInvalid, "the path has no slash in front", "write it like /topics", nil)
	}
	return c.call(ctx, method, path, query, body, answer)
}

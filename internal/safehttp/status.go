package safehttp

import (
	"context"
	"io"
	"net/http"
	"time"
)

// How much of a body is read of which only the status counts, and for how long.
const (
	drainMost = 64 << 10
	drainTime = 100 * time.Millisecond
)

// Status makes a call whose answer has no body that counts. It reads what comes at once, so that the connection is
// used again, and no more: a server that sends a gigabyte, or a byte a second, has answered when its status is there.
// Errors are those of Do.
func (c *Client) Status(req *http.Request) (Answer, error) {
	if _, err := c.Check(req.URL.String()); err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	resp, err := c.http.Do(req.WithContext(ctx))
	if err != nil {
		return Answer{}, failed(req.URL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	late := time.AfterFunc(drainTime, cancel)
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, drainMost) // how it ends does not matter
	return Answer{Status: resp.StatusCode, Header: resp.Header}, nil
}

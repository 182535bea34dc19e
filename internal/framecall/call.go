package framecall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

// answers are bounded. The server was chosen, so that it is believed how much a usual claim brings.
var answers = frame.Bounds{Most: 256<<20 + 16, Room: 4 << 20}

// Call makes a call, with the kind of error that a lost answer is.
func (c *Client) Call(ctx context.Context, call string, q, answer frame.Value, lost error) error {
	data, err := frame.Marshal(q)
	if err != nil {
		return err
	}
	if limit := int(c.limit.Load()); len(data) > limit {
		return frame.TooLarge(len(data), limit)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unhook := context.AfterFunc(c.life, cancel)
	defer unhook()
	resp, err := c.send(ctx, call, data, lost)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.Header.Get("Content-Type") != frame.ContentType {
		return refusedBy(resp, lost)
	}
	a := frame.Answer{Value: answer}
	if err := frame.Read(resp.Body, answers, &a); err != nil {
		return c.broken(ctx, err, lost)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // to its end, so that the connection is used again
	err = Away(a.Err, lost)
	if errors.Is(err, driver.ErrNotApplied) && c.life.Err() != nil { // both sides end: this one was first
		return ErrClosed(driver.ErrNotApplied)
	}
	return err
}

// send sends a call, and tells one that was not sent from one that may have been.
func (c *Client) send(ctx context.Context, call string, data []byte, lost error) (*http.Response, error) {
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { connected.Store(false) }, // again, if nothing could be sent on an old connection
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, c.base+call, bytes.NewReader(data))
	if err != nil {
		return nil, driver.NewError(driver.ErrInvalid, "the URL of the server is malformed", "write it as ferry://host:7070",
			err)
	}
	req.Header.Set("Content-Type", frame.ContentType)
	token, err := c.o.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	var shown *url.Error
	if errors.As(err, &shown) {
		err = shown.Err // without the URL
	}
	switch {
	case err == nil:
		return resp, nil
	case !connected.Load():
		return nil, c.broken(ctx, err, driver.ErrNotApplied)
	}
	return nil, c.broken(ctx, err, lost)
}

// broken is the error of a call that failed on its way.
func (c *Client) broken(ctx context.Context, err, kind error) error {
	if c.life.Err() != nil {
		return ErrClosed(kind)
	}
	if ctx.Err() != nil {
		return driver.NewError(kind, "the context ended before the server answered", "try again, with the same id", ctx.Err())
	}
	hint := "see whether the server runs and can be reached; try again"
	if errors.Is(kind, driver.ErrUnknown) {
		hint = "try again with the same id, which is stored once"
	}
	return driver.NewError(kind, "the server did not answer", hint, err)
}

// Away turns the word of a broker behind the gateway that it is closed into what that means here: the server is going
// away, and this driver is not closed.
func Away(err, lost error) error {
	if err == nil || !errors.Is(err, driver.ErrClosed) || errors.Is(err, driver.ErrLeaseLost) {
		return err
	}
	return driver.NewError(lost, "the server is stopping", "try again", nil)
}

// refusedBy is the error of an answer that no gateway gave: the server before it, or a proxy.
func refusedBy(resp *http.Response, lost error) error {
	kind, hint := lost, "see whether this is a Ferry server"
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		kind, hint = driver.ErrRefused, "use a token that the server knows: FERRY_TOKEN, or token_file in the URL"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		kind, hint = driver.ErrUnsupported, "see whether this is a Ferry server with a gateway"
	case http.StatusRequestEntityTooLarge:
		kind, hint = driver.ErrTooLarge, "send less at once"
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		kind, hint = driver.ErrNotApplied, "try again later"
	}
	return driver.NewError(kind, fmt.Sprintf("the server answered with status %d and no frame", resp.StatusCode), hint,
		nil)
}

package wecom

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/safehttp"
)

const (
	callTimeout = 20 * time.Second
	maxAnswer   = 32 << 20 // of a page of messages, or a file: 20 MB is the vendor's bound
)

// Client calls the API of the vendor with a token that all processes on a broker share. It is safe for concurrent use.
type Client struct {
	base         string
	corp, secret string
	voiceFormat  int
	http         *safehttp.Client
	tokens       *tokens
	media        *mediaCache
}

func newClient(kv driver.KV, c *Config, cacheBytes int64) (*Client, error) {
	h := safehttp.New(safehttp.Options{AllowPrivate: c.AllowPrivate, Timeout: callTimeout, MaxAnswer: maxAnswer})
	if _, err := h.Check(c.Vendor); err != nil {
		return nil, err
	}
	client := &Client{base: strings.TrimSuffix(c.Vendor, "/") + "/cgi-bin/", corp: c.Corp, secret: string(c.Secret),
		voiceFormat: voiceFormats[c.VoiceFormat], http: h, media: newMediaCache(cacheBytes)}
	tokens, err := newTokens(kv, c, client.fetchToken)
	client.tokens = tokens
	return client, err
}

// Format names it alone: fmt would show secrets in fields that are not exported.
func (c *Client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "wecom.Client of "+c.corp) }

// Close ends idle connections.
func (c *Client) Close() { c.http.Close() }

// Check asks for an access token: the credentials are right, and the vendor can be reached.
func (c *Client) Check(ctx context.Context) error {
	_, err := c.tokens.get(ctx, "")
	return err
}

// request is a call of the vendor's API.
type request struct {
	method, call string
	query        url.Values
	body         []byte
	contentType  string
}

// verdict is in every answer of the vendor.
type verdict struct {
	Code int    `json:"errcode"`
	Text string `json:"errmsg"`
}

// fetchToken asks the vendor for a token, and how long it lasts.
func (c *Client) fetchToken(ctx context.Context) (string, time.Duration, error) {
	var out struct {
		Token   string `json:"access_token"`
		Expires int    `json:"expires_in"`
	}
	q := url.Values{"corpid": {c.corp}, "corpsecret": {c.secret}}
	body, err := c.send(ctx, request{method: http.MethodGet, call: "gettoken", query: q})
	if err != nil {
		return "", 0, err
	}
	if err := decodeAnswer("gettoken", body, &out); err != nil {
		return "", 0, err
	}
	if out.Token == "" || out.Expires <= 0 {
		return "", 0, notUnderstood("gettoken")
	}
	return out.Token, time.Duration(out.Expires) * time.Second, nil
}

// call posts in as JSON and reads the answer into out.
func (c *Client) call(ctx context.Context, name string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return driver.NewError(ferry.ErrInvalid, "a request to WeCom cannot be encoded", "see the cause", err)
	}
	answer, err := c.authorized(ctx, request{method: http.MethodPost, call: name, query: url.Values{}, body: body,
		contentType: "application/json"})
	if err != nil || out == nil {
		return err
	}
	return decodeAnswer(name, answer, out)
}

// decodeAnswer reads an answer of the vendor.
func decodeAnswer(name string, answer []byte, out any) error {
	if err := json.Unmarshal(answer, out); err != nil {
		return notUnderstood(name)
	}
	return nil
}

// authorized makes a call with the access token, and once more with another one if the vendor refuses it.
func (c *Client) authorized(ctx context.Context, r request) ([]byte, error) {
	token, err := c.tokens.get(ctx, "")
	if err != nil {
		return nil, err
	}
	r.query.Set("access_token", token)
	answer, err := c.send(ctx, r)
	if !tokenRefused(err) {
		return answer, err
	}
	if token, err = c.tokens.get(ctx, token); err != nil {
		return nil, err
	}
	r.query.Set("access_token", token)
	return c.send(ctx, r)
}

// send makes one call and returns the body of its answer, if the vendor's verdict is success.
func (c *Client) send(ctx context.Context, r request) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.call+"?"+r.query.Encode(), bytes.NewReader(r.body))
	if err != nil {
		return nil, driver.NewError(ferry.ErrInvalid, "the address of WeCom cannot be used", "see Config.Vendor", nil)
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	a, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if a.Status != http.StatusOK || a.Cut {
		text := fmt.Sprintf("%s was answered with status %d and %d bytes", r.call, a.Status, len(a.Body))
		return nil, driver.NewError(ferry.ErrNotApplied, text, "try again later", nil)
	}
	if r.call == mediaCall && isFile(a.Header) {
		return a.Body, nil
	}
	var v verdict
	if err := decodeAnswer(r.call, a.Body, &v); err != nil {
		return nil, err
	}
	if v.Code != 0 {
		return nil, refused(r.call, v.Code, v.Text, c.secret, r.query.Get("access_token"))
	}
	return a.Body, nil
}

// mediaCall is the only one that is answered with the content of a file, if it succeeds.
const mediaCall = "media/get"

// isFile reports whether an answer is the content of a file and not a verdict.
func isFile(h http.Header) bool {
	kind := h.Get("Content-Type")
	verdict := strings.HasPrefix(kind, "application/json") || strings.HasPrefix(kind, "text/")
	return h.Get("Content-Disposition") != "" || !verdict
}

// notUnderstood is the error of an answer that is not what the vendor documents. A proxy may have made it: it is an
// ErrNotApplied, and without the cause, whose class would be that of our own input.
func notUnderstood(name string) error {
	return driver.NewError(ferry.ErrNotApplied, "the answer to "+name+" is not what WeCom documents",
		"see whether Config.Vendor is its address", nil)
}

// syncRequest asks for a page of messages.
type syncRequest struct {
	Cursor  string `json:"cursor,omitempty"`
	Token   string `json:"token,omitempty"`
	Limit   int    `json:"limit"`
	Account string `json:"open_kfid"`
	Voice   int    `json:"voice_format"`
}

// page of messages. More alone says whether there are others: a page may be short or empty all the same.
type page struct {
	Next     string            `json:"next_cursor"`
	More     int               `json:"has_more"`
	Messages []json.RawMessage `json:"msg_list"`
}

// pageSize is the most that the vendor gives at once.
const pageSize = 1000

// sync reads a page of an account's messages.
func (c *Client) sync(ctx context.Context, account, cursor, token string) (page, error) {
	var p page
	err := c.call(ctx, "kf/sync_msg", syncRequest{Cursor: cursor, Token: token, Limit: pageSize, Account: account,
		Voice: c.voiceFormat}, &p)
	return p, err
}

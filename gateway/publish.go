package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"unicode/utf8"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// Types of a body with many messages.
const (
	linesType = "application/x-ndjson"
	batchType = "application/vnd.ferry.batch+json"
)

// maxMessages is the most messages of one request.
const maxMessages = 10_000

// receipt is what became of a message, in JSON.
type receipt struct {
	ID        string `json:"id,omitempty"`
	Duplicate bool   `json:"duplicate,omitempty"`
	// IDWindow is for how long the same id is stored once.
	IDWindow jsontime.Duration `json:"id_window,omitempty"`
	Error    *problem          `json:"error,omitempty"`
}

// receipts are those of many messages, in their order.
type receipts struct {
	Receipts []receipt `json:"receipts"`
}

// servePublish stores one message, or many.
func (g *Gateway) servePublish(w http.ResponseWriter, r *http.Request) {
	topic := r.PathValue("topic")
	if err := errors.Join(driver.CheckTopic(topic), may(r.Context(), auth.Publish, topic)); err != nil {
		refuse(w, r, err)
		return
	}
	contentType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if contentType == frame.ContentType {
		g.publishFrame(w, r, topic)
		return
	}
	body, err := g.body(r)
	if err != nil {
		refuse(w, r, err)
		return
	}
	switch contentType {
	case linesType:
		g.publishMany(w, r, topic, lines(body))
	case batchType:
		g.publishMany(w, r, topic, elements(body))
	default:
		g.publishOne(w, r, topic, body)
	}
}

func (g *Gateway) publishOne(w http.ResponseWriter, r *http.Request, topic string, body []byte) {
	m, err := fromRequest(r, topic, body)
	if err != nil {
		refuse(w, r, err)
		return
	}
	got, err := g.broker.Publish(r.Context(), m)
	if err != nil {
		refuse(w, r, err)
		return
	}
	status := http.StatusCreated
	if got.Duplicate {
		status = http.StatusOK
	}
	answer(w, status, g.receipt(r.Context(), m, got))
}

func (g *Gateway) receipt(ctx context.Context, m *driver.Message, got driver.Receipt) receipt {
	if got.Err != nil {
		return receipt{Error: problemOf(ctx, got.Err)}
	}
	out := receipt{ID: got.ID, Duplicate: got.Duplicate}
	if m.OwnID {
		out.IDWindow = jsontime.Duration(g.driver.Capabilities().IDWindow)
	}
	return out
}

// publishMany stores the messages of a request in JSON. Nothing is stored of what is not understood whole.
func (g *Gateway) publishMany(w http.ResponseWriter, r *http.Request, topic string, next func() (message, error)) {
	var all []parsed
	for {
		in, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && len(all) == maxMessages {
			err = tooMany()
		}
		if err != nil {
			refuse(w, r, err)
			return
		}
		m, err := in.whole(topic)
		all = append(all, parsed{m, err})
	}
	g.publishAll(w, r, all)
}

func tooMany() error {
	return driver.NewError(driver.ErrTooLarge, "the request has too many messages",
		fmt.Sprintf("send at most %d at once", maxMessages), nil)
}

// publishFrame stores the messages of a frame: those of the call publish, whose topic is the one of the path, or left
// out.
func (g *Gateway) publishFrame(w http.ResponseWriter, r *http.Request, topic string) {
	var q frame.Publish
	err := g.readFrame(r, &q)
	switch {
	case err != nil:
	case q.Options != driver.PublishOptions{}:
		err = invalid("a frame with options belongs to the driver", "leave them out, or open ferry:// from Go", nil)
	case len(q.Messages) > maxMessages:
		err = tooMany()
	}
	if err != nil {
		refuse(w, r, err)
		return
	}
	all := make([]parsed, len(q.Messages))
	for i, m := range q.Messages {
		switch {
		case m == nil:
			all[i].err = invalid("a message is missing", "send one for each", nil)
			continue
		case m.Topic != "" && m.Topic != topic:
			all[i].err = invalid("a message is for another topic than the request", "leave its topic out", nil)
		}
		m.Topic, m.OwnID = topic, m.ID != ""
		all[i].message = m
	}
	g.publishAll(w, r, all)
}

// parsed is one message of several, or what is wrong with it.
type parsed struct {
	message *driver.Message
	err     error
}

// publishAll stores what is valid, in order, and answers for each.
func (g *Gateway) publishAll(w http.ResponseWriter, r *http.Request, all []parsed) {
	out := make([]receipt, len(all))
	ms, at := make([]*driver.Message, 0, len(all)), make([]int, 0, len(all))
	for i, p := range all {
		if p.err == nil {
			p.err = p.message.Validate(g.driver.Capabilities().MaxBody)
		}
		if p.err != nil {
			out[i].Error = problemOf(r.Context(), p.err)
			continue
		}
		ms, at = append(ms, p.message), append(at, i)
	}
	got, err := g.broker.PublishBatch(r.Context(), ms)
	if err != nil && len(got) != len(ms) {
		refuse(w, r, err)
		return
	}
	for i, n := range at {
		out[n] = g.receipt(r.Context(), ms[i], got[i])
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(appendReceipts(make([]byte, 0, receiptRoom*len(out)), out)) // who has gone is not told
}

// lines returns the messages of NDJSON, one after the other. Empty lines are none.
func lines(body []byte) func() (message, error) {
	scanner, n := bufio.NewScanner(bytes.NewReader(body)), 0
	scanner.Buffer(nil, len(body)+1)
	return func() (message, error) {
		for scanner.Scan() {
			n++
			if line := bytes.TrimSpace(scanner.Bytes()); len(line) > 0 {
				var m message
				err := strict(line, &m, fmt.Sprintf("line %d", n))
				return m, err
			}
		}
		return message{}, io.EOF
	}
}

// elements returns the messages of a JSON array, one after the other, and refuses what follows it.
func elements(body []byte) func() (message, error) {
	d, n := strictDecoder(body), 0
	err := demand(d, json.Delim('['))
	if !utf8.Valid(body) {
		err = errNotUTF8("the body")
	}
	return func() (m message, failed error) {
		switch {
		case err != nil:
			return m, err
		case !d.More():
			return m, cmp.Or(demand(d, json.Delim(']')), demand(d, nil), io.EOF)
		}
		n++
		if failed = d.Decode(&m); failed != nil {
			failed = errUnexpected(fmt.Sprintf("message %d", n), failed)
		}
		return m, failed
	}
}

// demand reads what must come next: a bracket, or nil for the end.
func demand(d *json.Decoder, want json.Token) error {
	got, err := d.Token()
	switch {
	case want == nil && errors.Is(err, io.EOF) || err == nil && got == want:
		return nil
	case err == nil:
		err = errors.New("it is no array of messages, or something follows it")
	}
	return errUnexpected("the body", err)
}

// strict reads one JSON value, and refuses fields that it does not know: what is misspelt would be ignored.
func strict(data []byte, v any, what string) error {
	if !utf8.Valid(data) {
		return errNotUTF8(what)
	}
	d := strictDecoder(data)
	err := d.Decode(v)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("more than one JSON value")
		}
	}
	if err != nil {
		return errUnexpected(what, err)
	}
	return nil
}

func strictDecoder(data []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d
}

// errNotUTF8 refuses what would be changed silently.
func errNotUTF8(what string) error {
	return invalid(what+" is not UTF-8", "send bytes as body_base64", nil)
}

func errUnexpected(what string, err error) error {
	return invalid(fmt.Sprintf("%s is not what is expected here: %v", what, err), "see docs/gateway.md for its fields",
		nil)
}

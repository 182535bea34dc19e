package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// maxLine is the longest line of NDJSON: a body at the limit, with every byte escaped.
const maxLine = 32 << 20

// pubLine is one line of ferry pub --ndjson.
type pubLine struct {
	ID          *string           `json:"id"`
	Key         *string           `json:"key"`
	Body        json.RawMessage   `json:"body"`
	BodyBase64  []byte            `json:"body_base64"`
	ContentType string            `json:"content_type"`
	Headers     map[string]string `json:"headers"`
	Priority    string            `json:"priority"`
	Delay       string            `json:"delay"`
	At          string            `json:"at"`
	TTL         string            `json:"ttl"`
	Dedup       string            `json:"dedup"`
	DedupWindow string            `json:"dedup_window"`
	MaxAttempts int               `json:"max_attempts"`
}

// publishLines publishes standard input.
func (s session) publishLines(ctx context.Context, template *driver.Message, batch int) error {
	p := newPublisher(s, "line", batch)
	p.progress = newProgress(s.process, sizeOf(s.in))
	defer p.progress.clear()
	in := bufio.NewReaderSize(patient{ctx, s.in}, 256<<10)
	for n := 1; ; n++ {
		line, err := readLine(in)
		p.read += int64(len(line))
		if len(bytes.TrimSpace(line)) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			if err := p.addLine(ctx, template, line, n); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return p.end(ctx, template.Topic)
		case err != nil:
			return p.stop(n, err)
		case in.Buffered() == 0: // the next read may wait for long
			if err := p.flush(ctx); err != nil {
				return err
			}
		}
	}
}

func (p *publisher) addLine(ctx context.Context, template *driver.Message, line []byte, n int) error {
	m, err := parseLine(template, line)
	if err == nil {
		err = m.Validate(p.s.driver.Capabilities().MaxBody)
	}
	if err != nil {
		return p.stop(n, err)
	}
	return p.add(ctx, m, n)
}

// readLine returns the next line with its end. The last one may have none, and comes with io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, usage(fmt.Sprintf("it is longer than %d MiB", maxLine>>20),
				"store large data elsewhere and publish a reference to it")
		case err == nil || !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// parseLine returns the message of a line: what it does not say is as in the template.
func parseLine(template *driver.Message, text []byte) (*driver.Message, error) {
	var l pubLine
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return nil, usage(fmt.Sprintf("it is not a message: %v", err),
			"each line is a JSON object; 'ferry pub --help' lists its fields")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, usage("there is something behind the message", "write one JSON object on each line")
	}
	body, contentType, err := l.content()
	if err != nil {
		return nil, err
	}
	m := template.Clone()
	if m.Body = body; l.ContentType != "" {
		m.ContentType = l.ContentType
	} else if m.ContentType == "" {
		m.ContentType = contentType
	}
	err = l.apply(m)
	return finished(m), err
}

// content returns the body: the text of a JSON string, or any other JSON as it is.
func (l pubLine) content() (body []byte, contentType string, err error) {
	if bytes.Equal(l.Body, []byte("null")) { // as jq writes what is not there
		l.Body = nil
	}
	switch {
	case l.Body != nil && l.BodyBase64 != nil:
		return nil, "", usage("it has both body and body_base64", "use one of them")
	case l.BodyBase64 != nil:
		return l.BodyBase64, typeOf(l.BodyBase64), nil
	case l.Body == nil:
		return nil, "", usage("it has no body", `an empty one is written as "body":""`)
	case l.Body[0] != '"':
		return l.Body, "application/json", nil
	}
	var s string
	if err := json.Unmarshal(l.Body, &s); err != nil {
		return nil, "", usage(fmt.Sprintf("its body is not text: %v", err), "use body_base64 for bytes")
	}
	return []byte(s), typeOf([]byte(s)), nil
}

// apply sets what the line says beside the body.
func (l pubLine) apply(m *driver.Message) (err error) {
	if l.ID != nil {
		m.ID = *l.ID
	}
	if l.Key != nil {
		m.Key = *l.Key
	}
	if m.Headers == nil {
		m.Headers = l.Headers
	}
	for name, value := range l.Headers {
		m.Headers[name] = value
	}
	if l.MaxAttempts != 0 {
		m.MaxAttempts = l.MaxAttempts
	}
	if l.Priority != "" {
		if m.Priority, err = parsePriority(l.Priority); err != nil {
			return err
		}
	}
	return l.applyTimes(m)
}

func (l pubLine) applyTimes(m *driver.Message) (err error) {
	if l.Delay != "" || l.At != "" { // in place of that of the flags
		m.Delay, m.At = 0, time.Time{}
	}
	if l.Dedup != "" {
		m.DedupID = l.Dedup
	}
	if l.At != "" {
		if m.At, err = parseTime(l.At); err != nil {
			return err
		}
	}
	for _, d := range []struct {
		name, text string
		to         *time.Duration
	}{{"delay", l.Delay, &m.Delay}, {"ttl", l.TTL, &m.TTL}, {"dedup_window", l.DedupWindow, &m.DedupWindow}} {
		if d.text == "" {
			continue
		}
		if *d.to, err = time.ParseDuration(d.text); err != nil {
			return usage(fmt.Sprintf("its %s %q is not a duration", d.name, d.text), `write it as "10s", "5m" or "1h30m"`)
		}
	}
	switch {
	case m.Delay < 0:
		return negativeDelay("its delay", m.Delay)
	case l.DedupWindow != "" && m.DedupID == "":
		return usage("it has a dedup_window and no dedup", "give both, or none")
	}
	return nil
}

// sizeOf returns how much there is to read, or 0 if nobody knows.
func sizeOf(r io.Reader) int64 {
	f, ok := r.(*os.File)
	if !ok {
		return 0
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

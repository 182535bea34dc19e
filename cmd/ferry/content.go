package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/driver"
)

// contentFlags are those that say what is in a message: for one to publish, or one to mend.
type contentFlags struct {
	key         string
	contentType string
	headers     []string
	priority    string
}

func (c *contentFlags) add(f *pflag.FlagSet) {
	f.StringVar(&c.key, "key", "", "messages of one key are handled in order")
	f.StringVar(&c.contentType, "content-type", "", "media type of the body (default: application/json if it is JSON, "+
		"else application/octet-stream)")
	f.StringArrayVar(&c.headers, "header", nil, "a header as name=value; may be repeated")
	f.StringVar(&c.priority, "priority", "normal", "low, normal, high or urgent")
	onlyOnCommandLine(f, "key", "content-type", "header", "priority")
}

// apply sets what the flags say. Of those that are not on the command line m keeps its own.
func (c contentFlags) apply(f *pflag.FlagSet, m *driver.Message) error {
	if f.Changed("key") {
		m.Key = c.key
	}
	if f.Changed("content-type") {
		m.ContentType = c.contentType
	}
	if f.Changed("priority") {
		var err error
		if m.Priority, err = parsePriority(c.priority); err != nil {
			return err
		}
	}
	for _, h := range c.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return usage(fmt.Sprintf("--header %q is not of the form name=value", printable(h)),
				"write it as --header name=value")
		}
		if m.Headers == nil {
			m.Headers = map[string]string{}
		}
		m.Headers[name] = value
	}
	return nil
}

func parsePriority(s string) (driver.Priority, error) {
	for p := driver.Low; p <= driver.Urgent; p++ {
		if p.String() == s {
			return p, nil
		}
	}
	return 0, usage(fmt.Sprintf("priority %q does not exist", printable(s)), "use low, normal, high or urgent")
}

// parseTime reads a time in UTC or with an offset, or without one in the local time of this machine.
func parseTime(s string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	for _, layout := range []string{time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage(fmt.Sprintf("%q is not a time", printable(s)),
		"write it as 2026-01-31T15:04:05Z, or '2026-01-31 15:04' in local time")
}

// typeOf returns the content type that handlers need to decode a body, if nobody said it.
func typeOf(body []byte) string {
	if json.Valid(body) {
		return "application/json"
	}
	return "application/octet-stream"
}

// bodyFlags replace the body of a message.
type bodyFlags struct{ body, file string }

func (b *bodyFlags) add(f *pflag.FlagSet) {
	f.StringVar(&b.body, "body", "", "the new body")
	f.StringVar(&b.file, "file", "", "a file with the new body; - is standard input")
	onlyOnCommandLine(f, "body", "file")
}

func (b bodyFlags) given(f *pflag.FlagSet) bool { return f.Changed("body") || f.Changed("file") }

// read returns the new body.
func (b bodyFlags) read(ctx context.Context, p process, f *pflag.FlagSet, limit int) ([]byte, error) {
	switch {
	case f.Changed("body") && f.Changed("file"):
		return nil, usage("both --body and --file are given", "use one of them")
	case f.Changed("body"):
		return []byte(b.body), nil
	case b.file == "-":
		return readBody(patient{ctx, p.in}, limit)
	}
	file, err := os.Open(b.file)
	if err != nil {
		return nil, usage(fmt.Sprintf("--file cannot be read: %v", err), "check the path and its permissions")
	}
	defer func() { _ = file.Close() }()
	return readBody(file, limit)
}

// readBody reads a whole body. One that is too large is cut just behind the limit, and refused when it is checked.
func readBody(r io.Reader, limit int) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, failure(fmt.Sprintf("the body cannot be read: %v", err), "nothing was sent; try again")
	}
	return body, nil
}

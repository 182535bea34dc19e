package main

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/result"
)

const msgWaitLong = `Waits until a message has been handled by a group, and prints what the handler returned. It needs
a handler whose results are kept (result.Keep): see docs/results.md. The id is that of the receipt, as 'ferry pub
--output json' prints it.

It fails if the message became a dead letter, was cancelled or dropped, or has not ended within --timeout; with
--output json its status is printed all the same.`

func newMsgWait(p process) *cobra.Command {
	c := &cobra.Command{Use: "wait TOPIC GROUP ID", Short: "Wait for the result of a message", Long: msgWaitLong,
		Example: "  ferry msg wait reports default 0198c0de-0000-7000-8000-000000000001\n  ferry msg wait reports default " +
			"order-42 --timeout 5m --output json\n  ferry msg wait reports default order-42 --raw > report.pdf"}
	r := newRemote(p, c)
	var timeout time.Duration
	var raw bool
	c.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait; 0: look once")
	onlyOnCommandLine(c.Flags(), "timeout")
	rawFlag(c.Flags(), &raw)
	c.RunE = func(c *cobra.Command, args []string) error {
		if timeout < 0 {
			return usage(fmt.Sprintf("--timeout %v is negative", timeout), "use 30s, or 0 to look once")
		}
		return r.with(c.Context(),
			func(s session) error { return s.await(c.Context(), args[0], args[1], args[2], timeout, raw) })
	}
	return c
}

// await prints the status of a message that has ended, or of one that has not in time.
func (s session) await(ctx context.Context, topic, group, id string, timeout time.Duration, raw bool) error {
	status, err := s.statusWithin(ctx, topic, group, id, timeout)
	if status.State == "" {
		return err
	}
	if err == nil {
		err = failedAs(status)
	}
	v := viewStatus(topic, group, id, status)
	switch {
	case raw && err == nil:
		return s.writeRaw(status.Body)
	case raw || s.format == formatTable && err != nil:
		return err
	}
	if printed := s.one(v, func() error { return s.sayf("%s", v) }); printed != nil {
		return printed
	}
	return err
}

func (s session) statusWithin(ctx context.Context, topic, group, id string, timeout time.Duration) (result.Status,
	error) {
	if timeout == 0 {
		return result.Get(ctx, s.broker, topic, group, id)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return result.Await(ctx, s.broker, topic, group, id)
}

// failedAs is the error of a message that did not end well, or nil.
func failedAs(s result.Status) error {
	switch s.State {
	case result.Failed:
		return failure(fmt.Sprintf("the message failed at attempt %d: %s", s.Attempt, s.Error),
			"see its dead letter with 'ferry dlq ls'")
	case result.Cancelled:
		return failure("the message was cancelled or dropped: "+s.Error, "publish it again if it is still wanted")
	}
	return nil
}

// statusView is the JSON form of a status.
type statusView struct {
	Topic       string         `json:"topic"`
	Group       string         `json:"group"`
	ID          string         `json:"id"`
	State       result.State   `json:"state"`
	Attempt     int            `json:"attempt"`
	Error       string         `json:"error,omitempty"`
	Progress    *progressView  `json:"progress,omitempty"`
	ContentType string         `json:"content_type,omitempty"`
	Body        *string        `json:"body,omitempty"` // of a body that is UTF-8
	BodyBase64  []byte         `json:"body_base64,omitempty"`
	At          *jsontime.Time `json:"at,omitempty"`
}

type progressView struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Note  string `json:"note,omitempty"`
}

func viewStatus(topic, group, id string, s result.Status) statusView {
	v := statusView{Topic: topic, Group: group, ID: id, State: s.State, Attempt: s.Attempt, Error: s.Error,
		ContentType: s.ContentType, At: jsontime.At(s.At)}
	if s.Progress != (result.Step{}) {
		v.Progress = &progressView{s.Progress.Done, s.Progress.Total, s.Progress.Note}
	}
	switch {
	case s.Body == nil:
	case utf8.Valid(s.Body):
		text := string(s.Body)
		v.Body = &text
	default:
		v.BodyBase64 = s.Body
	}
	return v
}

// String is what people read: the result, or how far the message is.
func (v statusView) String() string {
	switch {
	case v.Body != nil:
		return *v.Body
	case v.BodyBase64 != nil:
		return fmt.Sprintf("%s, with %d bytes that are no text: use --raw", v.State, len(v.BodyBase64))
	case v.Progress != nil && !v.State.Ended():
		return fmt.Sprintf("%s, %d of %d %s", v.State, v.Progress.Done, v.Progress.Total, v.Progress.Note)
	}
	return string(v.State)
}

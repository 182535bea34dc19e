package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/driver"
)

const pubLong = `Publishes messages and prints the id of each: one for every BODY, or - for one body from standard
input, or with --ndjson one for each line of standard input, a JSON object:

  {"body":"text or any JSON","key":"alice","headers":{"tenant":"a"},"priority":"high","delay":"10s"}

Its fields: body (required; or body_base64), id, key, content_type, headers, priority, delay or
at, ttl, dedup and dedup_window, max_attempts. Durations are texts like "10s". What a line does
not say the flags do. Lines are published in batches and in order; at the first one that is bad
or refused it stops, and says which lines are published and which are not. Lines with an "id"
may be published again within a minute: they are stored once.

A topic is created by its first message.`

const pubExample = `  ferry pub orders '{"id":1,"name":"世界"}'
  ferry pub orders '{"id":2}' '{"id":3}' --key alice        in order, one after the other
  ferry pub mails '{"to":"bob"}' --delay 10s --priority high --header tenant=a
  ferry pub reports run --at '2026-01-31 08:00' --ttl 24h
  ferry pub orders - < order.json
  ferry pub orders --ndjson < orders.ndjson
  ferry msg ls orders --limit 0 --output ndjson | jq -c '{key,body,body_base64,headers}' | ferry pub copy --ndjson`

// pubOptions are the flags of ferry pub.
type pubOptions struct {
	ndjson bool
	batch  int

	content     contentFlags
	id          string
	delay       time.Duration
	at          string
	ttl         time.Duration
	dedup       string
	dedupWindow time.Duration
	maxAttempts int
}

func newPub(p process) *cobra.Command {
	var o pubOptions
	c := &cobra.Command{Use: "pub TOPIC [BODY...]", Short: "Publish messages: from arguments, or NDJSON from standard " +
		"input", Long: pubLong, Example: pubExample}
	r := newRemote(p, c)
	r.begins = true
	o.flags(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		topic, bodies := args[0], args[1:]
		template, err := o.template(c.Flags(), topic, bodies)
		if err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			if o.ndjson {
				return s.publishLines(c.Context(), template, o.batch)
			}
			return s.publishBodies(c.Context(), template, bodies, o.batch)
		})
	}
	return c
}

func (o *pubOptions) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.ndjson, "ndjson", false, "read messages from standard input, a JSON object on each line")
	f.IntVar(&o.batch, "batch", 500, "messages in each publish call, 1 to 1000")
	o.content.add(f)
	f.StringVar(&o.id, "id", "", "the id of the message (default: a new one)")
	f.DurationVar(&o.delay, "delay", 0, "due this long from now, 10s for example")
	f.StringVar(&o.at, "at", "", "due at this time: 2026-01-31T15:04:05Z, or '2026-01-31 15:04' in local time; at the "+
		"latest 2262-04-11")
	f.DurationVar(&o.ttl, "ttl", 0, "removed this long from now if it is not handled by then (default: never)")
	f.StringVar(&o.dedup, "dedup", "", "publishes with the same text here, within --dedup-window, are one message")
	f.DurationVar(&o.dedupWindow, "dedup-window", 10*time.Minute, "how long --dedup is remembered, up to 168h")
	f.IntVar(&o.maxAttempts, "max-attempts", 0, "how often handlers try it; 2147483647: without end (default: as they "+
		"are set up)")
	onlyOnCommandLine(f, "ndjson", "id", "delay", "at", "ttl", "dedup", "dedup-window", "max-attempts")
}

func negativeDelay(what string, d time.Duration) error {
	return usage(fmt.Sprintf("%s %v is negative", what, d), "leave it out for a message that is due now")
}

// template returns a message with what the flags say, and checks everything that needs no broker.
func (o pubOptions) template(f *pflag.FlagSet, topic string, bodies []string) (*driver.Message, error) {
	switch {
	case o.ndjson && len(bodies) > 0:
		return nil, usage("both --ndjson and a BODY are given", "use one of them")
	case !o.ndjson && len(bodies) == 0:
		return nil, usage("there is nothing to publish", "give a BODY, - for standard input, or --ndjson; see 'ferry pub "+
			"--help'")
	case o.id != "" && (o.ndjson || len(bodies) > 1):
		return nil, usage("--id names one message, and there may be more", `with --ndjson give each line its "id"`)
	case o.batch < 1 || o.batch > 1000:
		return nil, usage(fmt.Sprintf("--batch %d is out of range", o.batch), "use 1 to 1000")
	case f.Changed("dedup-window") && o.dedup == "" && !o.ndjson:
		return nil, usage("--dedup-window is given without --dedup", "give both, or none")
	case o.delay < 0:
		return nil, negativeDelay("--delay", o.delay)
	}
	if err := driver.CheckTopic(topic); err != nil {
		return nil, err
	}
	m := &driver.Message{Topic: topic, ID: o.id, Delay: o.delay, TTL: o.ttl, DedupID: o.dedup, DedupWindow: o.dedupWindow,
		MaxAttempts: o.maxAttempts}
	if o.at != "" {
		var err error
		if m.At, err = parseTime(o.at); err != nil {
			return nil, err
		}
	}
	if err := o.content.apply(f, m); err != nil {
		return nil, err
	}
	return m, finished(m.Clone()).Validate(0)
}

// finished returns m without a dedup window that nothing needs: the template has one for lines with a dedup id.
func finished(m *driver.Message) *driver.Message {
	if m.DedupID == "" {
		m.DedupWindow = 0
	}
	return m
}

// publishBodies publishes arguments.
func (s session) publishBodies(ctx context.Context, template *driver.Message, bodies []string, batch int) error {
	p := newPublisher(s, "message", batch)
	for i, text := range bodies {
		body := []byte(text)
		if text == "-" {
			var err error
			if body, err = readBody(patient{ctx, s.in}, s.driver.Capabilities().MaxBody); err != nil {
				return err
			}
		}
		m := withBody(template, body)
		if err := m.Validate(s.driver.Capabilities().MaxBody); err != nil {
			return p.stop(i+1, err)
		}
		if err := p.add(ctx, m, i+1); err != nil {
			return err
		}
	}
	return p.end(ctx, template.Topic)
}

// withBody returns a copy of m with this body.
func withBody(m *driver.Message, body []byte) *driver.Message {
	c := m.Clone()
	c.Body = body
	if c.ContentType == "" {
		c.ContentType = typeOf(body)
	}
	return finished(c)
}

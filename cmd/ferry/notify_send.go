package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/notify"
)

// topicOfHubs adds --topic.
func topicOfHubs(f *pflag.FlagSet) *string {
	return f.String("topic", notify.DefaultTopic, "topic of the hubs")
}

// notifySend are the flags of ferry notify send.
type notifySend struct {
	to, set, data               []string
	id, format, priority, retry string
	template                    string
	delay                       time.Duration
	wait                        bool
}

var notifyRetries = map[string]notify.Retry{"standard": notify.Standard, "aggressive": notify.Aggressive,
	"conservative": notify.Conservative, "none": notify.NoRetry}

func newNotifySend(p process) *cobra.Command {
	var o notifySend
	c := &cobra.Command{Use: "send [TITLE] [BODY]", Short: "Queue a notification, and print its id",
		Long: "Queues a notification for the hubs that run on the broker, and prints its id. Title and body are given, or\n" +
			"those of a template of the hubs. With --wait it waits until every target has ended, and fails unless all\n" +
			"were reached.",
		Example: "  ferry notify send 'Disk full' 'db1 has 2 % left' --to slack:ops --priority urgent --wait\n" +
			"  ferry notify send --template full --set host=db1 --set left=0.02 --to slack:ops"}
	r := newRemote(p, c)
	topic := topicOfHubs(c.Flags())
	c.Flags().StringArrayVar(&o.to, "to", nil, "CHANNEL:DESTINATION; give it for each target")
	c.Flags().StringVar(&o.template, "template", "", "one of the hubs' templates, in place of title and body")
	c.Flags().StringArrayVar(&o.set, "set", nil,
		"a variable as name=value; with one, title and body are templates; may be repeated")
	c.Flags().StringArrayVar(&o.data, "data", nil,
		"what a channel wants to know, as name=value: at_all=true; may be repeated")
	c.Flags().StringVar(&o.id, "id", "", "id; under one no target is reached twice (default: a new one)")
	c.Flags().StringVar(&o.format, "format", string(notify.Text), "of the body: text, markdown or html")
	c.Flags().StringVar(&o.priority, "priority", "normal", "low, normal, high or urgent")
	c.Flags().StringVar(&o.retry, "retry", "standard", "standard, aggressive, conservative or none")
	c.Flags().DurationVar(&o.delay, "delay", 0, "send it after this time")
	c.Flags().BoolVar(&o.wait, "wait", false, "wait until every target has ended")
	onlyOnCommandLine(c.Flags(), "to", "id", "template", "set", "data")
	c.RunE = func(c *cobra.Command, args []string) error {
		m, err := o.message(args)
		if err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error { return s.notify(c.Context(), *topic, m, o.wait) })
	}
	return c
}

// message is what the command line says.
func (o notifySend) message(args []string) (*notify.Message, error) {
	if (len(args) == 0) == (o.template == "") {
		return nil, usage("give either a title or a template", "write ferry notify send 'Disk full', or --template NAME")
	}
	m := notify.NewMessage("", strings.Join(args[min(1, len(args)):], "")).WithID(o.id).
		WithFormat(notify.Format(o.format))
	if len(args) > 0 {
		m.Title = args[0]
	}
	m.Template = o.template
	for _, to := range o.to {
		channel, destination, ok := strings.Cut(to, ":")
		if !ok {
			return nil, usage("--to "+printable(to)+" names no channel", "write slack:ops for example")
		}
		m.AddTarget(notify.Target{Channel: channel, To: destination})
	}
	err := errors.Join(pairs("set", o.set, func(name, value string) { m.WithVariable(name, templateValue(value)) }),
		pairs("data", o.data, func(name, value string) { m.WithData(name, value) }))
	if err != nil {
		return nil, err
	}
	priority, err := parsePriority(o.priority)
	if err != nil {
		return nil, err
	}
	retry, ok := notifyRetries[o.retry]
	if !ok {
		return nil, usage("--retry "+printable(o.retry)+" is not known", "use standard, aggressive, conservative or none")
	}
	if o.delay > 0 {
		m.WithScheduledTime(time.Now().Add(o.delay))
	}
	return m.WithPriority(priority).WithRetry(retry).Build()
}

// pairs reads the values of a flag that takes name=value.
func pairs(flag string, values []string, set func(name, value string)) error {
	for _, v := range values {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return usage("--"+flag+" "+printable(v)+" is not of the form name=value", "write --"+flag+" name=value")
		}
		set(name, value)
	}
	return nil
}

// templateValue is a value of the command line: a number if it is written as one, so that templates can format it.
func templateValue(text string) any {
	if f, err := strconv.ParseFloat(text, 64); err == nil && strconv.FormatFloat(f, 'f', -1, 64) == text {
		return f
	}
	return text
}

// notify queues a message, and shows its receipt: the first one, or the last one if it waits.
func (s session) notify(ctx context.Context, topic string, m *notify.Message, wait bool) error {
	sender, err := notify.NewSender(ctx, s.broker, topic)
	if err != nil {
		return err
	}
	sent, err := sender.Send(ctx, m)
	if err != nil {
		return err
	}
	if !wait {
		receipt, err := sent.Receipt(ctx)
		if err != nil {
			return err
		}
		return s.one(viewReceipt(receipt), func() error { return s.sayf("%s", sent.ID) })
	}
	receipt, err := sent.Wait(ctx)
	if err != nil {
		return err
	}
	if err := s.one(viewReceipt(receipt), func() error { return s.showReceipt(receipt) }); err != nil {
		return err
	}
	if receipt.Status != notify.Success {
		return fmt.Errorf("%d of %d targets were reached", receipt.Succeeded, receipt.Total)
	}
	return nil
}

func newNotifyTest(p process) *cobra.Command {
	c := &cobra.Command{Use: "test CHANNEL DESTINATION", Short: "Send a test, and say whether the vendor took it",
		Example: "  ferry notify test slack ops"}
	r := newRemote(p, c)
	topic := topicOfHubs(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		m := notify.NewMessage("Test", "Ferry can send to "+args[0]+".").WithRetry(notify.NoRetry).
			AddTarget(notify.Target{Channel: args[0], To: args[1]})
		return r.with(c.Context(), func(s session) error { return s.notify(c.Context(), *topic, m, true) })
	}
	return c
}

func newNotifyChannels(p process) *cobra.Command {
	c := &cobra.Command{Use: "channels", Short: "List the channels of the hubs that run, and how their last sends ended",
		Example: "  ferry notify channels --output json"}
	r := newRemote(p, c)
	topic := topicOfHubs(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.with(c.Context(), func(s session) error {
			found, err := notify.Announced(c.Context(), s.broker, *topic)
			if err != nil {
				return err
			}
			views := make([]channelView, len(found))
			for i, one := range found {
				views[i] = viewChannel(one)
			}
			return list(r, channelColumns, views, "Nobody sends notifications: run ferry serve with channels in ferry.yaml.")
		})
	}
	return c
}

// channelView is the JSON form of a channel. It is stable.
type channelView struct {
	Channel      string         `json:"channel"`
	Destinations []string       `json:"destinations,omitempty"`
	Processes    int            `json:"processes"`
	Rates        []string       `json:"rates,omitempty"`
	Sent         uint64         `json:"sent"`
	Failed       uint64         `json:"failed"`
	Retried      uint64         `json:"retried"`
	Limited      uint64         `json:"limited"`
	LastAt       *jsontime.Time `json:"last_at,omitempty"`
	LastCode     string         `json:"last_code,omitempty"`
	LastError    string         `json:"last_error,omitempty"`
}

func viewChannel(i notify.ChannelInfo) channelView {
	v := channelView{Channel: i.Name, Destinations: i.Destinations, Processes: i.Processes, Sent: i.Stats.Sent,
		Failed: i.Stats.Failed, Retried: i.Stats.Retried, Limited: i.Stats.Limited}
	for _, r := range i.Limits.Rates {
		v.Rates = append(v.Rates, fmt.Sprintf("%d in %v", r.Sends, r.Per))
	}
	if i.Last != nil {
		v.LastAt, v.LastCode, v.LastError = jsontime.At(i.Last.At), string(i.Last.Code), i.Last.Error
	}
	return v
}

var channelColumns = []column[channelView]{
	{title: "channel", cell: func(v channelView) any { return v.Channel }},
	{title: "destinations", width: 30, cell: func(v channelView) any { return strings.Join(v.Destinations, ", ") }},
	{title: "processes", number: true, cell: func(v channelView) any { return v.Processes }},
	{title: "sent", number: true, cell: func(v channelView) any { return v.Sent }},
	{title: "failed", number: true, cell: func(v channelView) any { return v.Failed }},
	{title: "limited", number: true, cell: func(v channelView) any { return v.Limited }},
	{title: "last", cell: func(v channelView) any { return textOf(v.LastAt) }},
	{title: "error", width: 40, cell: func(v channelView) any { return v.LastError }},
}

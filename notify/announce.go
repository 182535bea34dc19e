package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/uuid7"
)

// A hub that runs announces its channels and templates in the broker, so that processes without their secrets can queue
// for them.
const (
	announceEvery = 10 * time.Second
	announcedFor  = 3 * announceEvery
)

// ChannelInfo is what hubs that run tell of a channel.
type ChannelInfo struct {
	Name   string `json:"name"`
	Limits Limits `json:"limits"`
	// Destinations are the names that targets may use. Empty: addresses, which only the channel can check.
	Destinations []string `json:"destinations,omitempty"`
	Attaches     bool     `json:"attaches,omitempty"`
	// Processes is how many have the channel; Stats are theirs together.
	Processes int          `json:"processes"`
	Stats     ChannelStats `json:"stats"`
	// Last is how the last send ended. Nil: nothing was sent.
	Last *Last `json:"last,omitempty"`
}

// Last is how a send ended. Code and Error are empty if the vendor took it.
type Last struct {
	At    time.Time `json:"at"`
	Code  Code      `json:"code,omitempty"`
	Error string    `json:"error,omitempty"`
}

// lister is a channel whose targets name robots.
type lister interface{ Destinations() []string }

// info describes the channels of this hub, in order of their names.
func (h *Hub) info() []ChannelInfo {
	var all []ChannelInfo
	offer := h.offer.Load()
	for _, name := range slices.Sorted(maps.Keys(offer.channels)) {
		c, counts := offer.channels[name], offer.counts[name]
		i := ChannelInfo{Name: name, Limits: c.Limits(), Processes: 1, Stats: counts.stats(), Last: counts.last.Load()}
		if l, ok := c.(lister); ok {
			i.Destinations = l.Destinations()
		}
		if a, ok := c.(attacher); ok {
			i.Attaches = a.Attaches()
		}
		all = append(all, i)
	}
	return all
}

func announcements(topic string) (bucket, prefix string) {
	return bucketOf(topic), "hub/" + topic + "/"
}

// announce tells others of the channels until ctx ends, and then that they are gone. Who fails to announce sends all
// the same.
func (h *Hub) announce(ctx context.Context) {
	bucket, prefix := announcements(h.o.Topic)
	name := prefix + uuid7.New(time.Now())
	write := func(ctx context.Context, ws ...driver.Write) {
		limited, cancel := context.WithTimeout(ctx, lastWrite)
		defer cancel()
		for _, r := range h.records.kv.Apply(limited, bucket, driver.KVOptions{}, ws...) {
			if r.Err != nil && ctx.Err() == nil {
				h.log.WarnContext(ctx, "channels of notifications are not announced; it is tried again", "error", r.Err)
			}
		}
	}
	defer write(context.WithoutCancel(ctx), driver.Write{Name: name, Delete: true})
	for {
		data, err := json.Marshal(h.info())
		if err != nil {
			h.log.ErrorContext(ctx, "channels of notifications cannot be announced", "error", err)
			return
		}
		write(ctx, driver.Write{Name: name, Data: data, TTL: announcedFor, Quiet: true})
		for ws := range slices.Chunk(h.templateWrites(), templatesAtOnce) {
			write(ctx, ws...)
		}
		if !sleep(ctx, announceEvery) {
			return
		}
	}
}

// Announced describes the channels of all hubs that run on a topic, in order of their names. An empty topic is
// DefaultTopic. What was sent in the last seconds may be missing.
func Announced(ctx context.Context, b *ferry.Broker, topic string) ([]ChannelInfo, error) {
	bucket, prefix := announcements(cmp.Or(topic, DefaultTopic))
	found := map[string]ChannelInfo{}
	q := driver.KVQuery{Bucket: bucket, Prefix: prefix, Limit: driver.MaxLimit}
	for {
		page, err := b.Driver().KV().List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, v := range page.Values {
			var infos []ChannelInfo
			if err := json.Unmarshal(v.Data, &infos); err != nil {
				return nil, driver.NewError(ferry.ErrInvalid, "the channels "+v.Name+" cannot be read",
					"see who else writes it", err)
			}
			for _, i := range infos {
				found[i.Name] = found[i.Name].and(i)
			}
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b ChannelInfo) int { return cmp.Compare(a.Name, b.Name) }), nil
}

// and puts together what two processes tell of a channel.
func (i ChannelInfo) and(other ChannelInfo) ChannelInfo {
	other.Processes += i.Processes
	other.Stats = other.Stats.plus(i.Stats)
	if other.Last == nil || i.Last != nil && i.Last.At.After(other.Last.At) {
		other.Last = i.Last
	}
	return other
}

// Sender queues notifications for hubs that run in other processes. It has none of their secrets.
type Sender struct{ hub *Hub }

// NewSender returns a sender for the hubs that run on a topic now. An empty topic is DefaultTopic. ErrNotFound: none
// does.
func NewSender(ctx context.Context, b *ferry.Broker, topic string) (*Sender, error) {
	infos, err := Announced(ctx, b, topic)
	if err != nil {
		return nil, err
	}
	if len(infos) == 0 {
		return nil, driver.NewError(ferry.ErrNotFound, "nobody sends notifications on this broker",
			"run a hub, with ferry serve and channels in ferry.yaml for example", nil)
	}
	o := Options{Topic: topic, Channels: map[string]Channel{}}
	for _, i := range infos {
		o.Channels[i.Name] = elsewhere{i}
	}
	if o.Templates, err = announcedTemplates(ctx, b, topic); err != nil {
		return nil, err
	}
	hub, err := New(b, o)
	return &Sender{hub}, err
}

// Send queues a message as Hub.Send does, made of a template of the hubs if it names one. Addresses are checked where
// they are sent to: the receipt tells.
func (s *Sender) Send(ctx context.Context, m *Message) (*Handle, error) { return s.hub.Send(ctx, m) }

// elsewhere is a channel that other processes have.
type elsewhere struct{ info ChannelInfo }

func (e elsewhere) Limits() Limits { return e.info.Limits }

func (e elsewhere) Attaches() bool { return e.info.Attaches }

func (e elsewhere) Check(to string) error {
	if len(e.info.Destinations) == 0 || slices.Contains(e.info.Destinations, to) {
		return nil
	}
	return invalid(fmt.Sprintf("it has %v", e.info.Destinations), "channel %q has no destination %.60q", e.info.Name, to)
}

// Send is never called: a sender runs no hub.
func (e elsewhere) Send(context.Context, Rendered) (Sent, error) {
	return Sent{}, &Error{Code: CodeInvalidConfig, Text: "the channel is in another process", Hint: "run a hub there"}
}

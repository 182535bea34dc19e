package redis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

const (
	publishAtOnce   = 250  // messages in one script, so that it blocks the server for a millisecond or two
	publishAtomicly = 1000 // messages of an atomic publish
	publishBytes    = 8 << 20
)

// Publish stores messages: one script for those of one topic shard.
func (d *Driver) Publish(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	rs := make([]driver.Receipt, len(msgs))
	if err := d.refuse(ctx, o); err != nil {
		return rs, failAll(rs, err)
	}
	if len(msgs) == 0 {
		return rs, nil
	}
	p := &publication{d: d, o: o, msgs: msgs, rs: rs, turn: d.counter.Add(1)}
	if o.Atomic {
		if err := p.checkAtomic(ctx); err != nil {
			return rs, failAll(rs, err)
		}
	}
	p.run(ctx)
	return rs, joined(rs)
}

// refuse says why nothing can be published with these options.
func (d *Driver) refuse(ctx context.Context, o driver.PublishOptions) error {
	if err := d.open(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return notStarted(err)
	}
	if !d.caps.Gives(o.Level) {
		return driver.NewError(driver.ErrUnsupported, fmt.Sprintf("this server cannot give durability %q", o.Level),
			fmt.Sprintf("it gives %v; see docs/redis.md for the settings of each level", d.caps.Levels), nil)
	}
	return nil
}

// publication is one call of Publish, or the follow-ups of a settlement.
type publication struct {
	d        *Driver
	o        driver.PublishOptions
	msgs     []*driver.Message
	rs       []driver.Receipt
	turn     uint64
	force    bool   // whatever the bounds say
	replaces string // the undecodable entry that this replaces
}

// checkAtomic refuses what is not one step.
func (p *publication) checkAtomic(ctx context.Context) error {
	unsupported := func(text, hint string) error { return driver.NewError(driver.ErrUnsupported, text, hint, nil) }
	if len(p.msgs) > publishAtomicly {
		return unsupported(fmt.Sprintf("%d messages are too many for one step", len(p.msgs)), fmt.Sprintf("publish at most %d atomically", publishAtomicly))
	}
	var first *shard
	for _, m := range p.msgs {
		if m.Topic != p.msgs[0].Topic {
			return unsupported("an atomic publish reaches over topics", "publish to one topic, or not atomically")
		}
		t, err := p.d.ensure(ctx, m.Topic, 0)
		if err != nil {
			return err
		}
		s := t.shardFor(m.Key, p.turn)
		if first != nil && s != first {
			return unsupported(fmt.Sprintf("an atomic publish reaches over shards of topic %q", m.Topic), "give the messages one key, or use one shard")
		}
		first = s
	}
	return nil
}

// run sends the messages, each topic shard's in their order.
func (p *publication) run(ctx context.Context) {
	parcels := map[string]*parcel{}
	var order []*parcel
	send := func(x *parcel) {
		if len(x.at) > 0 {
			p.send(ctx, x)
		}
	}
	for i, m := range p.msgs {
		if p.rs[i].Err = p.d.checkMessage(m); p.rs[i].Err != nil {
			continue
		}
		t, err := p.d.ensure(ctx, m.Topic, 0)
		if err != nil {
			p.rs[i].Err = err
			continue
		}
		s := t.shardFor(m.Key, p.turn)
		x := parcels[s.tag]
		if x == nil {
			x = &parcel{topic: t, shard: s}
			parcels[s.tag] = x
			order = append(order, x)
		}
		x.add(i, m)
		if !p.o.Atomic && (len(x.at) >= publishAtOnce || x.bytes >= publishBytes) {
			send(x)
			*x = parcel{topic: x.topic, shard: x.shard}
		}
	}
	for _, x := range order {
		send(x)
	}
}

func (d *Driver) checkMessage(m *driver.Message) error {
	if m.ID == "" {
		return driver.NewError(driver.ErrInvalid, "the message has no id", "give each message its own", nil)
	}
	if len(m.Body) > d.caps.MaxBody || !m.Priority.Valid() {
		return m.Validate(d.caps.MaxBody)
	}
	return nil
}

// parcel is what goes to one shard in one script.
type parcel struct {
	topic *topic
	shard *shard
	at    []int // places of the messages in the call
	ids   map[string]bool
	twice bool // an id occurs twice
	plain bool
	kinds []byte
	pairs []any // id, envelope, ...
	more  []any
	bytes int
}

// Kinds of messages, as lua/publish.lua lists them. The two lowest bits are the lane.
const (
	kindKey   = 4
	kindDelay = 8
	kindTTL   = 16
	kindDedup = 32
	kindOwnID = 64
)

func (x *parcel) add(i int, m *driver.Message) {
	stored := *m
	stored.Topic, stored.PublishedAt = "", time.Time{}
	x.put(i, indexID(m.ID), envelope.Append(nil, &stored), m)
}

// put adds an envelope with what the script must know of its message.
func (x *parcel) put(i int, id string, data []byte, m *driver.Message) {
	if x.ids == nil {
		x.ids = map[string]bool{}
	}
	x.twice = x.twice || x.ids[id]
	x.ids[id] = true
	x.at = append(x.at, i)
	x.pairs = append(x.pairs, id, data)
	x.bytes += len(data)
	kind := byte(m.Priority.Lane())
	if m.Key != "" {
		kind |= kindKey
		x.more = append(x.more, m.Key)
	}
	if delay := delayText(m); delay != "" {
		kind |= kindDelay
		x.more = append(x.more, delay)
	}
	if m.TTL > 0 {
		kind |= kindTTL
		x.more = append(x.more, milliseconds(m.TTL))
	}
	if m.DedupID != "" {
		kind |= kindDedup
		x.more = append(x.more, m.DedupID, milliseconds(m.DedupWindow))
	}
	if m.OwnID {
		kind |= kindOwnID
	}
	x.kinds = append(x.kinds, kind)
}

// delayText says when a message is due, or "" for now.
func delayText(m *driver.Message) string {
	switch {
	case m.Delay == driver.Hold:
		return "h"
	case !m.At.IsZero():
		ms := min(max(m.At.UnixMilli(), 0), maxMS)
		if m.At.Nanosecond()%int(time.Millisecond) != 0 {
			ms++ // never early
		}
		return "@" + strconv.FormatInt(ms, 10)
	case m.Delay > 0:
		return strconv.FormatInt(milliseconds(m.Delay), 10)
	}
	return ""
}

// maxMS is the latest time that can be said: numbers below 1e14 are exact in scripts.
const maxMS = 90_000_000_000_000

// milliseconds rounds up: nothing is ever early.
func milliseconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return (int64(d)-1)/int64(time.Millisecond) + 1
}

// indexID is an id as the index has it: a UUID in its canonical form as a zero byte and its 16 bytes.
func indexID(id string) string {
	if b, ok := packUUID(id); ok {
		return "\x00" + string(b[:])
	}
	return id
}

func packUUID(id string) (b [16]byte, ok bool) {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
		return b, false
	}
	n := 0
	for i := 0; i < 36; i++ {
		if id[i] == '-' {
			if i != 8 && i != 13 && i != 18 && i != 23 {
				return b, false
			}
			continue
		}
		v := strings.IndexByte("0123456789abcdef", id[i])
		if v < 0 {
			return b, false
		}
		b[n/2] = b[n/2]<<4 | byte(v)
		n++
	}
	return b, true
}

// isPlain reports whether all messages have no more than the script's default.
func (x *parcel) isPlain() bool {
	for _, k := range x.kinds {
		if k != 1 {
			return false
		}
	}
	return !x.twice
}

// send publishes a parcel and fills in its receipts.
func (p *publication) send(ctx context.Context, x *parcel) {
	reply, err := p.deliver(ctx, x)
	if err == nil {
		err = p.receipts(x, reply)
	}
	if err != nil {
		for _, i := range x.at {
			p.rs[i] = driver.Receipt{ID: p.msgs[i].ID, Err: err}
		}
	}
}

func (p *publication) deliver(ctx context.Context, x *parcel) ([]any, error) {
	kinds, flags := "", ""
	if !x.isPlain() {
		kinds = string(x.kinds)
	}
	if p.force {
		flags += "f"
	}
	if p.o.Atomic {
		flags += "a"
	}
	args := make([]any, 0, 7+len(x.pairs)+len(x.more))
	args = append(args, x.shard.of, "", p.d.newToken(), flags, p.replaces, len(x.at), kinds)
	args = append(append(args, x.pairs...), x.more...)
	for range staleTries {
		g := x.shard.groups()
		if len(g.names) == 0 {
			var err error
			if g, err = p.prepare(ctx, x); err != nil {
				return nil, err
			}
		}
		args[0], args[1] = x.shard.of, g.epoch
		reply, err := p.d.runAt(ctx, p.o.Level, &p.d.scripts.publish, g.keys, args)
		if err != nil || text(reply, 0) != "stale" {
			return reply, err
		}
		if text(reply, 1) == x.shard.of {
			x.shard.learn(text(reply, 2), text(reply, 3))
			continue
		}
		p.d.forgetTopic(x.topic) // deleted, or made anew with other shards
		if p.o.Atomic && text(reply, 1) != "" {
			break
		}
		t, err := p.d.ensure(ctx, x.topic.name, 0)
		if err != nil {
			return nil, err
		}
		if len(t.shards) != len(x.topic.shards) {
			break
		}
		if _, err := t.shards[x.shard.index].join(ctx, membership{}); err != nil {
			return nil, err
		}
		x.topic, x.shard = t, t.shards[x.shard.index]
	}
	return nil, driver.NewError(driver.ErrNotApplied, fmt.Sprintf("topic %q keeps changing", x.topic.name), "publish again", nil)
}

// prepare makes sure that the shard has a group.
func (p *publication) prepare(ctx context.Context, x *parcel) (*groups, error) {
	return x.shard.join(ctx, membership{group: driver.DefaultGroup, only: true})
}

// receipts reads what became of each message.
func (p *publication) receipts(x *parcel, reply []any) error {
	switch text(reply, 0) {
	case "ok":
		first, err := strconv.ParseUint(text(reply, 1), 10, 64)
		if err != nil {
			return errShape("publish", reply)
		}
		for n, i := range x.at {
			p.rs[i] = driver.Receipt{ID: p.msgs[i].ID, Ref: x.shard.ref(first + uint64(n))}
		}
		return nil
	case "mixed":
		list := texts(reply, 1)
		if len(list) != len(x.at) {
			return errShape("publish", reply)
		}
		for n, i := range x.at {
			p.rs[i] = p.receipt(x, p.msgs[i].ID, list[n])
		}
		return nil
	case "missing":
		return driver.NewError(driver.ErrNotFound, "the entry is not there any more", "it was deleted or published meanwhile", nil)
	}
	return errShape("publish", reply)
}

func (p *publication) receipt(x *parcel, id, what string) driver.Receipt {
	r := driver.Receipt{ID: id}
	seq, first, _ := strings.Cut(what[1:], " ")
	switch n, _ := strconv.ParseUint(seq, 10, 64); what[0] {
	case 's':
		r.Ref = x.shard.ref(n)
	case 'd':
		r.Ref, r.Duplicate = x.shard.ref(n), true
		if first != "" {
			r.ID = unindexID(first)
		}
	case 'm', 'b':
		r.Err = driver.NewError(driver.ErrFull, fmt.Sprintf("topic %q has reached its bound", x.topic.name),
			"publish again when consumers have caught up, or raise the bound", nil)
	default:
		r.Err = errShape("publish", []any{what})
	}
	return r
}

// unindexID undoes indexID.
func unindexID(s string) string {
	if len(s) != 17 || s[0] != 0 {
		return s
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", s[1:5], s[5:7], s[7:9], s[9:11], s[11:])
}

func (s *shard) ref(seq uint64) driver.Ref {
	return driver.Ref{Partition: int32(s.index), Pos: min(seq, math.MaxInt64)}
}

func failAll(rs []driver.Receipt, err error) error {
	for i := range rs {
		rs[i].Err = err
	}
	return err
}

// joined returns the distinct errors of the receipts.
func joined(rs []driver.Receipt) error {
	var errs []error
	for _, r := range rs {
		if r.Err == nil {
			continue
		}
		if len(errs) > 0 && errs[len(errs)-1].Error() == r.Err.Error() {
			continue
		}
		errs = append(errs, r.Err)
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

package redisstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

const (
	publishAtOnce   = 250 // messages in one script, so that it blocks the server for a few milliseconds
	publishAtomicly = 1000
)

// Publish stores messages: one script for those of one partition.
func (d *Driver) Publish(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	rs := make([]driver.Receipt, len(msgs))
	if err := d.refuse(ctx, o); err != nil {
		return rs, failAll(rs, err)
	}
	p := &publication{d: d, o: o, msgs: msgs, rs: rs, turn: d.counter.Add(1)}
	if o.Atomic && len(msgs) > 0 {
		if err := p.checkAtomic(ctx); err != nil {
			return rs, failAll(rs, err)
		}
	}
	p.run(ctx)
	return rs, joined(rs)
}

func (d *Driver) refuse(ctx context.Context, o driver.PublishOptions) error {
	if err := d.open(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return driver.NewError(driver.ErrNotApplied, "the context ended before the call began", "try again", err)
	}
	return d.survey.Refuse(ctx, o.Level)
}

// publication is one call of Publish, or the follow-ups of a settlement.
type publication struct {
	d     *Driver
	o     driver.PublishOptions
	msgs  []*driver.Message
	rs    []driver.Receipt
	turn  uint64
	force bool // whatever the bounds say
}

// checkAtomic refuses what is not one step.
func (p *publication) checkAtomic(ctx context.Context) error {
	unsupported := func(text, hint string) error { return driver.NewError(driver.ErrUnsupported, text, hint, nil) }
	if len(p.msgs) > publishAtomicly {
		return unsupported(fmt.Sprintf("%d messages are too many for one step", len(p.msgs)), fmt.Sprintf("publish at most %d atomically", publishAtomicly))
	}
	var first *partition
	for _, m := range p.msgs {
		t, err := p.d.ensure(ctx, m.Topic, 0)
		if err != nil {
			return err
		}
		part := t.partFor(m, p.turn)
		if first != nil && part != first {
			return unsupported("an atomic publish reaches over topics or partitions", "give the messages one topic and one key, or use one partition")
		}
		first = part
	}
	return nil
}

// parcel is what goes to one partition in one script.
type parcel struct {
	topic *topic
	part  *partition
	at    []int // places of the messages in the call
	plain bool  // nothing but plain messages: see lua/publish.lua
	args  []any // of the script that takes them
}

// add takes in a message.
func (x *parcel) add(i int, m *driver.Message) {
	if len(x.at) == 0 {
		x.plain = true
	}
	x.at = append(x.at, i)
	x.plain = x.plain && isPlain(m)
}

// isPlain tells whether a message is only added to the stream.
func isPlain(m *driver.Message) bool {
	return m.Delay <= 0 && m.At.IsZero() && m.TTL == 0 && m.DedupID == "" && !m.OwnID
}

// encode makes the arguments of the script.
func (x *parcel) encode(msgs []*driver.Message, flags string) {
	if x.plain {
		x.encodePlain(msgs, strings.Trim(flags, "a"))
		return
	}
	x.args = append(make([]any, 0, 2+16*len(x.at)), flags, len(x.at))
	for _, i := range x.at {
		x.args = append(x.args, argsOf(msgs[i])...)
	}
}

// shapeList are the different lists of field names in a parcel: nearly always one.
type shapeList struct {
	names [][]string
	head  []any // as the script reads them
}

// of returns the number of the shape of some fields, from 1.
func (l *shapeList) of(pairs []envelope.Pair) int {
	for n, names := range l.names {
		same := len(names) == len(pairs)
		for i := 0; same && i < len(names); i++ {
			same = names[i] == pairs[i].Name
		}
		if same {
			return n + 1
		}
	}
	names := make([]string, len(pairs))
	l.head = append(l.head, len(pairs))
	for i, p := range pairs {
		names[i] = p.Name
		l.head = append(l.head, p.Name)
	}
	l.names = append(l.names, names)
	return len(l.names)
}

// encodePlain makes the arguments of lua/publish.lua.
func (x *parcel) encodePlain(msgs []*driver.Message, flags string) {
	var shapes shapeList
	values, kinds := make([]any, 0, 5*len(x.at)), make([]int, len(x.at))
	ends := make([]int, len(x.at))
	size, prio := 0, 0
	var room [16]envelope.Pair
	for n, i := range x.at {
		pairs := pairsOf(room[:0], msgs[i])
		for _, p := range pairs {
			size += len(p.Name) + len(p.Value)
		}
		for _, p := range pairs[1:] { // the first is the version
			values = append(values, p.Value)
		}
		kinds[n], ends[n] = shapes.of(pairs[2:]), len(values) // the second is the id
		if msgs[i].Priority != driver.Normal {
			prio = n + 1
		}
	}
	x.args = append(make([]any, 0, 5+len(shapes.head)+len(values)+len(x.at)), flags, len(x.at), size, prio, len(shapes.names))
	x.args = append(x.args, shapes.head...)
	if len(shapes.names) == 1 {
		x.args = append(x.args, values...)
		return
	}
	begin := 0
	for n, end := range ends {
		x.args = append(append(x.args, kinds[n]), values[begin:end]...)
		begin = end
	}
}

// run sends the messages, each partition's in their order.
func (p *publication) run(ctx context.Context) {
	parcels := map[*partition]*parcel{}
	var order []*parcel
	for i, m := range p.msgs {
		if p.rs[i].Err = p.d.checkMessage(m); p.rs[i].Err != nil {
			continue
		}
		t, err := p.d.ensure(ctx, m.Topic, 0)
		if err != nil {
			p.rs[i].Err = err
			continue
		}
		part := t.partFor(m, p.turn)
		x := parcels[part]
		if x == nil || !p.o.Atomic && len(x.at) >= publishAtOnce {
			x = &parcel{topic: t, part: part}
			parcels[part] = x
			order = append(order, x)
		}
		x.add(i, m)
	}
	p.sendAll(ctx, order)
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

// pairsOf appends the fields of the entry that a message becomes: first the version, then the id.
func pairsOf(dst []envelope.Pair, m *driver.Message) []envelope.Pair {
	stored := *m
	stored.Topic, stored.PublishedAt = "", time.Time{}
	return envelope.ToFields(envelope.Stream, dst, &stored)
}

// fieldsOf are the fields of the entry that a message becomes, and their size.
func fieldsOf(m *driver.Message) (fields []any, size int) {
	for _, p := range pairsOf(nil, m) {
		fields = append(fields, p.Name, p.Value)
		size += len(p.Name) + len(p.Value)
	}
	return fields, size
}

func argsOf(m *driver.Message) []any {
	fields, size := fieldsOf(m)
	return append([]any{m.ID, delayText(m), milliseconds(m.TTL), m.DedupID, milliseconds(m.DedupWindow), flag(m.OwnID), size, len(fields)}, fields...)
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

// sendAll sends parcels: those of different partitions in one round trip, those of one partition one after the other.
func (p *publication) sendAll(ctx context.Context, parcels []*parcel) {
	for len(parcels) > 0 {
		var now, later []*parcel
		var calls []*scriptCall
		parts := make(map[*partition]bool, len(parcels))
		for _, x := range parcels {
			if parts[x.part] || p.o.Level.Replicas() > 0 && len(now) > 0 {
				later = append(later, x)
				continue
			}
			parts[x.part] = true
			x.encode(p.msgs, p.flags())
			now, calls = append(now, x), append(calls, &scriptCall{part: x.part, script: p.scriptOf(x), args: x.args})
		}
		if p.o.Level.Replicas() == 0 {
			p.d.runAll(ctx, calls)
		} else {
			calls[0].reply, calls[0].err = now[0].part.runAt(ctx, p.o.Level, calls[0].script, calls[0].args)
		}
		for i, x := range now {
			p.finish(ctx, x, calls[i])
		}
		parcels = later
	}
}

func (p *publication) flags() string {
	flags := ""
	if p.force {
		flags += "f"
	}
	if p.o.Atomic {
		flags += "a"
	}
	return flags
}

func (p *publication) scriptOf(x *parcel) *script {
	if x.plain {
		return &p.d.scripts.publish
	}
	return &p.d.scripts.store
}

// finish fills in the receipts of a parcel, when it is stored.
func (p *publication) finish(ctx context.Context, x *parcel, c *scriptCall) {
	results, err := p.deliver(ctx, x, c)
	for n, i := range x.at {
		if err != nil {
			p.rs[i] = driver.Receipt{ID: p.msgs[i].ID, Err: err}
			continue
		}
		p.rs[i] = x.receipt(p.msgs[i].ID, results[n])
	}
}

// deliver reads the answer to a parcel, and sends it again where something has to be done before.
func (p *publication) deliver(ctx context.Context, x *parcel, c *scriptCall) ([]string, error) {
	reply, err := c.reply, c.err
	for range staleTries {
		if err != nil {
			return nil, err
		}
		switch text(reply, 0) {
		case "ok", "plain":
			results := texts(reply, 1)
			if len(results) != len(x.at) {
				return nil, errShape("publish", reply)
			}
			return results, nil
		case "slow":
			x.plain = false
			x.encode(p.msgs, p.flags())
		case "nogroup":
			err = p.d.prepare(ctx, x.topic)
		case "stale":
			err = errStale
		}
		if errors.Is(err, errStale) {
			err = p.refresh(ctx, x)
		}
		if err == nil {
			reply, err = x.part.runAt(ctx, p.o.Level, p.scriptOf(x), x.args)
		}
	}
	return nil, errStale
}

// refresh finds the partition of a topic that was made anew. Where its number of partitions changed, the parcel cannot go.
func (p *publication) refresh(ctx context.Context, x *parcel) error {
	t, err := p.d.remake(ctx, x.topic)
	if err != nil {
		return err
	}
	if len(t.parts) != len(x.topic.parts) {
		return errStale
	}
	x.topic, x.part = t, t.parts[x.part.index]
	return nil
}

// receipt reads what became of a message.
func (x *parcel) receipt(id, what string) driver.Receipt {
	r := driver.Receipt{ID: id}
	switch {
	case x.plain:
		r.Ref = x.part.ref(what)
	case strings.HasPrefix(what, "s"):
		r.Ref = x.part.ref(what[1:])
	case strings.HasPrefix(what, "l"):
	case strings.HasPrefix(what, "d"):
		first, at, _ := strings.Cut(what[1:], " ")
		r.ID, r.Duplicate, r.Ref = first, true, x.part.ref(at)
	case what == "m":
		r.Err = driver.NewError(driver.ErrFull, fmt.Sprintf("topic %q has reached its bound", x.topic.name),
			"publish again when consumers have caught up, or raise the bound", nil)
	default:
		r.Err = errShape("publish", []any{what})
	}
	return r
}

// ref is the place of a stream entry: its id in two numbers. What is not in the stream has none.
func (p *partition) ref(id string) driver.Ref {
	ms, seq, ok := strings.Cut(id, "-")
	pos, err1 := strconv.ParseUint(ms, 10, 64)
	sub, err2 := strconv.ParseUint(seq, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return driver.Ref{}
	}
	return driver.Ref{Partition: int32(p.index), Pos: pos, Sub: sub}
}

// streamID undoes ref.
func streamID(r driver.Ref) string {
	return strconv.FormatUint(r.Pos, 10) + "-" + strconv.FormatUint(r.Sub, 10)
}

func failAll(rs []driver.Receipt, err error) error {
	for i := range rs {
		rs[i].Err = err
	}
	return err
}

// joined returns the errors of the receipts, like ones that follow each other once.
func joined(rs []driver.Receipt) error {
	var errs []error
	for _, r := range rs {
		if r.Err != nil && (len(errs) == 0 || errs[len(errs)-1].Error() != r.Err.Error()) {
			errs = append(errs, r.Err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

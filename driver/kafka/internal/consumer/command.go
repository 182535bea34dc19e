package consumer

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
	"github.com/ferrymq/ferry/internal/envelope"
)

// executor applies commands to what a member owns.
type executor struct{ *member }

// Command is what a process asks the owner of a partition to do: a record in its retry log. The owner answers with a
// tombstone of the same key. Only the owner changes what it has in memory.
type Command struct {
	Op     string // purge, skip, delete, move
	ID     string
	Ref    driver.Ref
	Before int64 // purge, skip: of the main topic
	After  time.Duration
	Edit   []byte // move: an envelope
	sent   time.Time
}

// answer is what became of a command.
type answer struct {
	Changed int
	Kind    string // of the error, empty for none
	Text    string
}

const (
	answerHeader = "ferry-answer"
	commandFor   = 10 * time.Second // a command that nobody took until then is void
)

var commandErrors = map[string]error{"conflict": driver.ErrConflict, "not found": driver.ErrNotFound,
	"unknown": driver.ErrUnknown, "not applied": driver.ErrNotApplied}

// queuedCommand is a command that waits to be applied.
type queuedCommand struct {
	p   *partition
	key string
	c   Command
}

// commanded takes a command from the retry log of an owned partition. A record of another form is left alone.
func (p *partition) commanded(r *kgo.Record) {
	var c Command
	if r.Value == nil || json.Unmarshal(r.Value, &c) != nil {
		return
	}
	c.sent = r.Timestamp
	p.m.commands = append(p.m.commands, queuedCommand{p, string(r.Key), c})
	p.m.commanded.Give()
}

// obey applies commands one after the other until the member leaves.
func (m executor) obey(ctx context.Context) {
	m.commanded.Each(ctx, func() {
		m.mu.Lock()
		commands := m.commands
		m.commands = nil
		m.mu.Unlock()
		for _, a := range commands {
			m.executor.answer(ctx, a)
		}
	})
}

func (m executor) answer(ctx context.Context, a queuedCommand) {
	m.mu.Lock()
	lost := a.p.lost
	m.mu.Unlock()
	if lost || ctx.Err() != nil {
		return
	}
	var got answer
	var err error
	if m.d.cluster.Now().Sub(a.c.sent) > commandFor {
		err = driver.NewError(driver.ErrNotApplied, "the command came too late", "try again", nil)
	} else {
		got.Changed, err = m.executor.apply(ctx, a.p, a.c)
	}
	if err == nil {
		err = cluster.Unsure("the change", m.commit(ctx, a.p))
	}
	if err != nil {
		got.Kind, got.Text = "unknown", err.Error()
		for name, kind := range commandErrors {
			if errors.Is(err, kind) {
				got.Kind = name
			}
		}
	}
	r := m.retryEnd(a.p, a.key)
	data, _ := json.Marshal(got) // plain data: never fails
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: answerHeader, Value: data})
	_ = m.d.cluster.Produce(ctx, r) // who asked waits in vain, and says so
}

// apply does what a command says, in one partition.
func (m executor) apply(ctx context.Context, p *partition, c Command) (int, error) {
	switch c.Op {
	case "purge":
		return m.executor.purge(ctx, p, c.Before)
	case Skip:
		return m.executor.skip(ctx, p, c.Before)
	case "delete":
		n, err := m.executor.cancelItems(ctx, p, func(it *Item) bool { return it.Ref == c.Ref && it.Msg.ID == c.ID })
		if err == nil && n == 0 {
			err = ErrBusy(c.ID, driver.StateInflight)
		}
		return n, err
	case "move":
		var edit *driver.Message
		if len(c.Edit) > 0 {
			var err error
			if edit, err = envelope.Decode(c.Edit); err != nil {
				return 0, driver.NewError(driver.ErrInvalid, "the edit cannot be read", "use the same version everywhere", err)
			}
		}
		return 1, m.executor.reschedule(ctx, p, c, edit)
	}
	return 0, driver.NewError(driver.ErrNotApplied, fmt.Sprintf("the command %q is not known", c.Op),
		"use the same version everywhere", nil)
}

// ask sends a command to the owner of a partition and waits for the answer.
func (d *Groups) ask(ctx context.Context, topic, group string, partition int32, c Command) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, commandFor)
	defer cancel()
	key := commandPrefix + rand.Text()
	value, _ := json.Marshal(c) // plain data: never fails
	r := loggedAs(d.cluster.RetryTopic(topic, group), partition, key, value, record.State{Insert: true, Offset: -1})
	if err := d.cluster.Produce(ctx, r); err != nil {
		return 0, err
	}
	for at := r.Offset + 1; ; {
		rs, next, err := d.cluster.Fetch(ctx, r.Topic, partition, at)
		for _, r := range rs {
			if string(r.Key) == key && r.Value == nil {
				return readAnswer(r)
			}
		}
		if at = next; err == nil && len(rs) == 0 {
			err = cluster.Pause(ctx, cluster.FetchWait/5)
		}
		if err != nil {
			return 0, cluster.Unknown(err, fmt.Sprintf("the consumer that owns partition %d of topic %q does not answer",
				partition, topic), "see whether it lives, then look at the message and try again")
		}
	}
}

func readAnswer(r *kgo.Record) (int, error) {
	var got answer
	switch err := json.Unmarshal([]byte(record.HeaderOf(r, answerHeader)), &got); {
	case err != nil:
		return 0, driver.NewError(driver.ErrNotApplied, "the partition changed its owner", "try again", nil)
	case got.Kind == "":
		return got.Changed, nil
	}
	return got.Changed, driver.NewError(commandErrors[got.Kind],
		"the consumer that owns the message says: "+strings.TrimPrefix(got.Text, "ferry: "), "", nil)
}

// Change applies a command in every partition that it concerns: here where we own it or nobody does, otherwise by its
// owner. One process at a time changes a group that has no owner who would see to it.
func (d *Groups) Change(ctx context.Context, t *registry.TopicState, group string, c Command,
	ends map[int32]int64) (n int, err error) {
	for tries := 0; ; {
		busy, err := d.Consumers(ctx, t.Name, group)
		if err != nil {
			return 0, err
		}
		if busy {
			n, err = d.changeOnce(ctx, t, group, c, ends)
		} else {
			visit := func(ctx context.Context) (_ []*kgo.Record, err error) {
				n, err = d.changeOnce(ctx, t, group, c, ends)
				return nil, err
			}
			err = d.registry.Meta.Contend(ctx, compacted.Contender{Key: "visit/" + t.Name + "/" + group, Row: -1,
				Change: visit})
		}
		switch {
		case errors.Is(err, ErrTaken) && tries < 3:
			tries++
		case !busy && n == 0 && errors.Is(err, compacted.ErrContested):
			if err := cluster.Pause(ctx, cluster.FetchWait/5); err != nil {
				return 0, err
			}
		default:
			return n, err
		}
	}
}

func (d *Groups) changeOnce(ctx context.Context, t *registry.TopicState, group string, c Command,
	ends map[int32]int64) (n int, err error) {
	vs, err := d.Look(ctx, t, group)
	if err != nil {
		return 0, err
	}
	defer vs.Close()
	for _, v := range vs.All {
		for _, p := range v.concerned(c) {
			var changed int
			c.Before = ends[p.id]
			if v.Busy {
				changed, err = d.ask(ctx, t.Name, group, p.id, c)
			} else {
				changed, err = v.executor.apply(ctx, p, c)
			}
			n += changed
			if err != nil {
				return n, err
			}
		}
		if !v.Busy {
			if err := v.Finish(ctx); err != nil {
				return n, err
			}
		}
	}
	if n == 0 && c.ID != "" {
		return 0, vs.Sure()
	}
	return n, nil
}

// concerned are the partitions that a command is about.
func (m *member) concerned(c Command) []*partition {
	return m.those(func(p *partition) bool { return c.Op == "purge" || c.Op == Skip || p.find(c.Ref, c.ID) != nil })
}

func (p *partition) find(ref driver.Ref, id string) *Item {
	for it := range p.items.all() {
		if it.Ref == ref && it.Msg.ID == id {
			return it
		}
	}
	return nil
}

// ErrBusy is for a message whose state does not allow a change.
func ErrBusy(id string, state driver.State) error {
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("message %q is %s", id, state), "wait until it is settled", nil)
}

// cancelItems ends items of a partition that nobody holds: first in the retry log, then their offsets are done.
func (m executor) cancelItems(ctx context.Context, p *partition, match func(*Item) bool) (int, error) {
	m.mu.Lock()
	var picked []*Item
	var ends []*kgo.Record
	for it := range p.items.all() {
		if it.state != ready && it.state != waiting || p.going || !match(it) {
			continue
		}
		picked = append(picked, it)
		m.withhold(it)
		if it.logKey != "" {
			ends = append(ends, m.endOf(it))
		}
	}
	m.mu.Unlock()
	err := m.d.cluster.Produce(ctx, ends...)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, it := range picked {
		if err != nil {
			m.offer(it)
			continue
		}
		it.p.tally.Cancelled++
		m.remove(it)
	}
	if err != nil {
		return 0, err
	}
	return len(picked), nil
}

// purge ends what a partition has before an offset of the main topic, fetched or not.
func (m executor) purge(ctx context.Context, p *partition, before int64) (int, error) {
	n, err := m.executor.cancelItems(ctx, p, func(it *Item) bool { return it.offset < before })
	if err != nil {
		return n, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for off := p.done.Next; off < before; off++ { // what is not fetched yet is passed over when it is
		if !p.done.Has(off) {
			p.done.Set(off)
			p.tally.Cancelled++
			n++
		}
	}
	p.dirty = true
	return n, nil
}

// Skip is the command to end what is ready in a retry log and lies before an offset of the main topic.
const Skip = "skip"

func (m executor) skip(ctx context.Context, p *partition, before int64) (int, error) {
	return m.executor.cancelItems(ctx, p, func(it *Item) bool {
		return it.state == ready && it.logKey != "" && it.offset >= 0 && it.offset < before
	})
}

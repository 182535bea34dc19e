package kafka

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
	"github.com/ferrymq/ferry/internal/envelope"
)

// command is what a process asks the owner of a partition to do: a record in its side log. The owner answers with a
// tombstone of the same key. Only he changes what he has in memory.
type command struct {
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
	commandPrefix = "c/"
	answerHeader  = "ferry-answer"
	commandFor    = 10 * time.Second // a command that nobody took until then is void
)

var commandErrors = map[string]error{"conflict": driver.ErrConflict, "not found": driver.ErrNotFound, "unknown": driver.ErrUnknown, "not applied": driver.ErrNotApplied}

// asked is a command that waits to be applied.
type asked struct {
	p   *partition
	key string
	c   command
}

// commanded takes a command from the side log of an owned partition. A record of another form is left alone.
func (p *partition) commanded(r *kgo.Record) {
	var c command
	if r.Value == nil || json.Unmarshal(r.Value, &c) != nil || p.m.visiting {
		return
	}
	c.sent = r.Timestamp
	p.m.asked = append(p.m.asked, asked{p, string(r.Key), c})
	select {
	case p.m.called <- struct{}{}:
	default:
	}
}

// obey applies commands one after the other until the member leaves.
func (m *member) obey(ctx context.Context) {
	defer m.tasks.Done()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.called:
		}
		for ctx.Err() == nil {
			m.mu.Lock()
			if len(m.asked) == 0 {
				m.mu.Unlock()
				break
			}
			a := m.asked[0]
			m.asked = m.asked[1:]
			lost := a.p.lost
			m.mu.Unlock()
			if !lost {
				m.answer(ctx, a)
			}
		}
	}
}

func (m *member) answer(ctx context.Context, a asked) {
	var got answer
	var err error
	if m.d.now().Sub(a.c.sent) > commandFor {
		err = driver.NewError(driver.ErrNotApplied, "the command came too late", "try again", nil)
	} else {
		got.Changed, err = m.apply(ctx, a.p, a.c)
	}
	if err == nil {
		err = unsure("the change", m.commit(ctx, a.p))
	}
	if err != nil {
		got.Kind, got.Text = "unknown", err.Error()
		for name, kind := range commandErrors {
			if errors.Is(err, kind) {
				got.Kind = name
			}
		}
	}
	r := m.sideEnd(a.p, a.key)
	data, _ := json.Marshal(got) // plain data: never fails
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: answerHeader, Value: data})
	_ = m.d.produce(ctx, r) // who asked waits in vain, and says so
}

// apply does what a command says, in one partition.
func (m *member) apply(ctx context.Context, p *partition, c command) (int, error) {
	switch c.Op {
	case "purge":
		return m.purge(ctx, p, c.Before)
	case skip:
		return m.skip(ctx, p, c.Before)
	case "delete":
		n, err := m.cancelItems(ctx, p, func(it *item) bool { return it.ref == c.Ref && it.msg.ID == c.ID })
		if err == nil && n == 0 {
			err = errBusy(c.ID, driver.StateInflight)
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
		return 1, m.reschedule(ctx, p, c, edit)
	}
	return 0, driver.NewError(driver.ErrNotApplied, fmt.Sprintf("the command %q is not known", c.Op), "use the same version everywhere", nil)
}

// ask sends a command to the owner of a partition and waits for the answer.
func (d *Driver) ask(ctx context.Context, topic, group string, partition int32, c command) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, commandFor)
	defer cancel()
	key := commandPrefix + rand.Text()
	value, _ := json.Marshal(c) // plain data: never fails
	r := &kgo.Record{Topic: d.sideTopic(topic, group), Partition: partition, Key: []byte(key), Value: value, Headers: []kgo.RecordHeader{state{Insert: true, Offset: -1}.header()}}
	if err := d.produce(ctx, r); err != nil {
		return 0, err
	}
	cl, err := kgo.NewClient(d.clientOptions(kgo.FetchMaxWait(fetchWait), kgo.DisableFetchSessions(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.Topic: {partition: kgo.NewOffset().At(r.Offset + 1)}}))...)
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	for {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return 0, driver.NewError(driver.ErrUnknown, fmt.Sprintf("the consumer that owns partition %d of topic %q does not answer", partition, topic), "see whether it lives, then look at the message and try again", ctx.Err())
		}
		for _, r := range fetches.Records() {
			if string(r.Key) == key && r.Value == nil {
				return readAnswer(r)
			}
		}
	}
}

func readAnswer(r *kgo.Record) (int, error) {
	for _, h := range r.Headers {
		var got answer
		if h.Key != answerHeader || json.Unmarshal(h.Value, &got) != nil {
			continue
		}
		if got.Kind == "" {
			return got.Changed, nil
		}
		return got.Changed, driver.NewError(commandErrors[got.Kind], "the consumer that owns the message says: "+strings.TrimPrefix(got.Text, "ferry: "), "", nil)
	}
	return 0, driver.NewError(driver.ErrNotApplied, "the partition changed its owner", "try again", nil)
}

// change applies a command in every partition that it concerns: here where we own it or nobody does, otherwise by its owner.
func (d *Driver) change(ctx context.Context, t *topicState, group string, c command, ends map[int32]int64) (int, error) {
	for tries := 0; ; tries++ {
		n, err := d.changeInTurn(ctx, t, group, c, ends)
		if tries < 3 && errors.Is(err, errTaken) {
			continue
		}
		return n, err
	}
}

// changeInTurn lets one process at a time change a group that has no owner who would see to it.
func (d *Driver) changeInTurn(ctx context.Context, t *topicState, group string, c command, ends map[int32]int64) (n int, err error) {
	for {
		busy, err := d.consumers(ctx, t.name, group)
		if err != nil {
			return 0, err
		}
		if busy {
			return d.changeOnce(ctx, t, group, c, ends)
		}
		err = d.meta.contend(ctx, 0, "visit/"+t.name+"/"+group, -1, func(ctx context.Context) (_, _ []*kgo.Record, err error) {
			n, err = d.changeOnce(ctx, t, group, c, ends)
			return nil, nil, err
		})
		if n > 0 || !errors.Is(err, errContested) {
			return n, err
		}
		if err := pause(ctx, fetchWait/5); err != nil {
			return 0, err
		}
	}
}

func (d *Driver) changeOnce(ctx context.Context, t *topicState, group string, c command, ends map[int32]int64) (n int, err error) {
	vs, err := d.look(ctx, t, group)
	if err != nil {
		return 0, err
	}
	defer vs.close()
	for _, v := range vs.all {
		for _, p := range v.concerned(c) {
			var changed int
			c.Before = ends[p.id]
			if v.busy {
				changed, err = d.ask(ctx, t.name, group, p.id, c)
			} else {
				changed, err = v.apply(ctx, p, c)
			}
			n += changed
			if err != nil {
				return n, err
			}
		}
		if !v.busy {
			if err := v.finish(ctx); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// concerned are the partitions that a command is about.
func (v *view) concerned(c command) (ps []*partition) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.parts {
		if c.Op == "purge" || c.Op == skip || p.find(c.Ref, c.ID) != nil {
			ps = append(ps, p)
		}
	}
	return ps
}

func (p *partition) find(ref driver.Ref, id string) *item {
	for it := range p.items.all() {
		if it.ref == ref && it.msg.ID == id && it.state != gone {
			return it
		}
	}
	return nil
}

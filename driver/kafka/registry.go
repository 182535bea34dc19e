package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// topicState is what this process knows of a topic that exists.
type topicState struct {
	name, key  string // key is its row in the meta topic
	main       string // the Kafka topic
	partitions int
	grouped    atomic.Bool // it has had a group
	spread     uint32      // where the next message without a key goes
	dead       *index      // nil until somebody looks
	invalid    *index
	sidesMu    sync.Mutex
	sides      map[string]*sideKeys // by group
	history    []settled            // for trimming
	bound      bound
	row        atomic.Pointer[parsedRow]
}

// parsedRow is a row of the meta topic with the record that it was read from.
type parsedRow struct {
	from *kgo.Record
	topicRow
}

// topicRow is a topic in the meta topic, under "t/name".
type topicRow struct {
	Config   driver.TopicConfig
	Paused   bool `json:",omitempty"`
	Implicit bool `json:",omitempty"` // made by a publish: takes on the first configuration
}

// groupRow is a group in the meta topic, under "g/topic/group".
type groupRow struct {
	Order  driver.Order
	Fixed  bool `json:",omitempty"` // a member or a creator chose the order
	Paused bool `json:",omitempty"`
}

func topicKey(topic string) string        { return "t/" + topic }
func groupKey(topic, group string) string { return "g/" + topic + "/" + group }

func (d *Driver) putMeta(ctx context.Context, key string, row any) error {
	r := &kgo.Record{Topic: d.metaTopic(), Key: []byte(key)}
	if row != nil {
		r.Value, _ = json.Marshal(row) // plain data: never fails
	}
	return d.meta.put(ctx, r)
}

// metaRow reads a row, and reports whether it is there.
func (d *Driver) metaRow(key string, row any) bool {
	r := d.meta.get(key)
	return r != nil && json.Unmarshal(r.Value, row) == nil
}

// metaChanged wakes members: a pause may be set or lifted. Whoever consumes also fires what others begin to delay.
func (d *Driver) metaChanged() {
	wanted := d.meta.get(delaysKey) != nil
	d.mu.Lock()
	if wanted && d.delays == nil && !d.closed && len(d.members) > 0 && !d.starting {
		d.starting = true
		d.tasks.Go(d.joinDelays)
	}
	members := make([]*member, 0, len(d.members))
	for _, m := range d.members {
		members = append(members, m)
	}
	d.mu.Unlock()
	for _, m := range members {
		paused := d.paused(m.topic.name, m.group)
		m.mu.Lock()
		m.stopped = paused
		m.wakeAll()
		m.mu.Unlock()
	}
}

// joinDelays starts to fire what another process delayed. It tries again with the next change of the registry.
func (d *Driver) joinDelays() {
	ctx, cancel := context.WithTimeout(context.Background(), d.o.Session)
	defer cancel()
	_, _ = d.startDelays(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.starting = false
}

// paused reports whether deliveries to a group are stopped.
func (d *Driver) paused(topic, group string) bool {
	var t topicRow
	var g groupRow
	d.metaRow(topicKey(topic), &t)
	d.metaRow(groupKey(topic, group), &g)
	return t.Paused || g.Paused
}

// groupsOf lists the groups of a topic in order of their names.
func (d *Driver) groupsOf(topic string) []string {
	var names []string
	for _, r := range d.meta.all() {
		if g, ok := strings.CutPrefix(string(r.Key), groupKey(topic, "")); ok {
			names = append(names, g)
		}
	}
	slices.Sort(names)
	return names
}

// existing returns a topic as others left it meanwhile, or ErrNotFound.
func (d *Driver) existing(ctx context.Context, topic string) (*topicState, error) {
	if d.isClosed() {
		return nil, refusal.Closed()
	}
	if err := d.meta.sync(ctx); err != nil {
		return nil, err
	}
	var row topicRow
	if !d.metaRow(topicKey(topic), &row) {
		d.mu.Lock()
		delete(d.topics, topic)
		d.mu.Unlock()
		return nil, errNoTopic(topic)
	}
	return d.remember(ctx, topic)
}

// current returns a topic by what this process knows, and asks only when it knows nothing.
func (d *Driver) current(ctx context.Context, topic string) (*topicState, error) {
	var row topicRow
	if d.metaRow(topicKey(topic), &row) {
		return d.remember(ctx, topic)
	}
	return d.existing(ctx, topic)
}

// rowOf is how a topic is configured.
func (d *Driver) rowOf(t *topicState) topicRow {
	r := d.meta.get(t.key)
	if have := t.row.Load(); have != nil && have.from == r {
		return have.topicRow
	}
	row := parsedRow{from: r}
	d.metaRow(t.key, &row.topicRow)
	t.row.Store(&row)
	return row.topicRow
}

// remember keeps what publishing needs to know of a topic.
func (d *Driver) remember(ctx context.Context, topic string) (*topicState, error) {
	d.mu.Lock()
	t := d.topics[topic]
	d.mu.Unlock()
	if t != nil {
		return t, nil
	}
	n, err := d.partitionsOf(ctx, d.mainTopic(topic))
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, errNoTopic(topic)
	}
	t = &topicState{name: topic, key: topicKey(topic), main: d.mainTopic(topic), partitions: n}
	d.mu.Lock()
	defer d.mu.Unlock()
	if other := d.topics[topic]; other != nil {
		return other, nil
	}
	d.topics[topic] = t
	return t, nil
}

// ensure returns a topic, made with row if it does not exist.
func (d *Driver) ensure(ctx context.Context, topic string, row topicRow) (*topicState, error) {
	d.mu.Lock()
	t, closed := d.topics[topic], d.closed
	d.mu.Unlock()
	if closed {
		return nil, refusal.Closed()
	}
	if t != nil {
		return t, nil
	}
	release, err := d.single(ctx, "topic/"+topic)
	if err != nil {
		return nil, err
	}
	defer release()
	if t, err := d.existing(ctx, topic); err == nil || !isNotFound(err) {
		return t, err
	}
	if err := d.makeTopic(ctx, topic, row); err != nil {
		return nil, err
	}
	return d.remember(ctx, topic)
}

// single lets one caller at a time do something by this name.
func (d *Driver) single(ctx context.Context, name string) (release func(), err error) {
	for {
		d.mu.Lock()
		busy := d.joining[name]
		if busy == nil {
			mine := make(chan struct{})
			d.joining[name] = mine
			d.mu.Unlock()
			return func() {
				d.mu.Lock()
				delete(d.joining, name)
				d.mu.Unlock()
				close(mine)
			}, nil
		}
		d.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// mayStart refuses a new group that begins in a history that its topic does not keep. A topic is not made for it.
func (d *Driver) mayStart(ctx context.Context, topic, group string, start driver.Position) error {
	if start.From == driver.FromEnd {
		return nil
	}
	t, err := d.existing(ctx, topic)
	switch {
	case isNotFound(err):
		return start.CheckKept(topic, 0)
	case err != nil:
		return err
	}
	if err := d.meta.sync(ctx); err != nil { // others may have made the group, or changed Keep
		return err
	}
	var row groupRow
	if d.metaRow(groupKey(topic, group), &row) {
		return nil
	}
	return start.CheckKept(topic, d.rowOf(t).Config.Keep)
}

// ensureGroup makes a group that begins at a position, if it does not exist.
func (d *Driver) ensureGroup(ctx context.Context, t *topicState, group string, row groupRow, start driver.Position) error {
	release, err := d.single(ctx, "group/"+t.name+"/"+group)
	if err != nil {
		return err
	}
	defer release()
	var have groupRow
	if !d.metaRow(groupKey(t.name, group), &have) {
		if err := d.meta.sync(ctx); err != nil {
			return err
		}
		if err := d.makeGroup(ctx, t, group, row, start); err != nil {
			return err
		}
		d.metaRow(groupKey(t.name, group), &have)
	}
	switch {
	case !row.Fixed || have.Fixed && have.Order == row.Order:
		return nil
	case have.Fixed:
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("group %q of topic %q is %s, not %s", group, t.name, have.Order, row.Order),
			"use the order that its first member chose, or another group", nil)
	}
	have.Order, have.Fixed = row.Order, true
	return d.putMeta(ctx, groupKey(t.name, group), have)
}

// keepGrace is how much longer than Keep a message is shown after it was stored: it is settled a little later.
const keepGrace = 10 * time.Second

// Ends of a topic.
var (
	endPosition   = driver.Position{From: driver.FromEnd}
	beginPosition = driver.Position{From: driver.FromBegin}
)

// position turns a place in the history into an offset of each partition.
func (d *Driver) position(ctx context.Context, t *topicState, p driver.Position) (map[int32]int64, error) {
	name := d.mainTopic(t.name)
	list := d.admin.ListCommittedOffsets
	switch p.From {
	case driver.FromBegin:
		if keep := d.rowOf(t).Config.Keep; keep > 0 {
			return d.position(ctx, t, driver.Position{From: driver.FromTime, Time: d.now().Add(-keep - keepGrace)})
		}
		list = d.admin.ListStartOffsets
	case driver.FromTime, driver.FromRef:
		at := p.Time
		if p.From == driver.FromRef {
			r, err := d.readOne(ctx, name, p.Ref.Partition, int64(p.Ref.Pos)-1)
			if err != nil {
				return nil, err
			}
			if r == nil || p.Ref.Sub != 0 {
				return nil, driver.NewError(driver.ErrNotFound, fmt.Sprintf("no message %s in topic %q", p.Ref, t.name), "use a Ref of a stored message", nil)
			}
			at = r.Timestamp
		}
		found, err := d.admin.ListOffsetsAfterMilli(ctx, at.UnixMilli(), name)
		if err == nil {
			err = found.Error()
		}
		if err != nil {
			return nil, d.unreached("reading offsets", err)
		}
		offsets := map[int32]int64{}
		for i, o := range found[name] {
			offsets[i] = o.Offset
		}
		if p.From == driver.FromRef {
			offsets[p.Ref.Partition] = int64(p.Ref.Pos) - 1
		}
		return offsets, nil
	}
	found, err := list(ctx, name)
	if err == nil {
		err = found.Error()
	}
	if err != nil {
		return nil, d.unreached("reading offsets", err)
	}
	offsets := map[int32]int64{}
	for i, o := range found[name] {
		offsets[i] = o.Offset
	}
	return offsets, nil
}

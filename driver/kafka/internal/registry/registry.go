package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/internal/refusal"
)

// TopicNames lists the topics in order.
func (d *Registry) TopicNames() []string { return d.named(TopicKey("")) }

// GroupsOf lists the groups of a topic in order of their names.
func (d *Registry) GroupsOf(topic string) []string { return d.named(GroupKey(topic, "")) }

// named lists what follows the beginning of keys of rows, in order.
func (d *Registry) named(prefix string) (names []string) {
	for _, r := range d.Meta.All() {
		if name, ok := strings.CutPrefix(string(r.Key), prefix); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Registry is which topics and groups there are, and how they are configured: the rows of the meta topic.
type Registry struct {
	cluster *cluster.Cluster
	tables  *compacted.Tables
	Meta    *compacted.Table

	mu     sync.Mutex
	topics map[string]*TopicState
}

// New is a registry that has read nothing; see Follow.
func New(c *cluster.Cluster, ts *compacted.Tables) *Registry {
	return &Registry{cluster: c, tables: ts, topics: map[string]*TopicState{}}
}

// Follow reads the meta topic, and calls changed whenever rows of it have changed.
func (d *Registry) Follow(ctx context.Context, changed func()) error {
	d.Meta = &compacted.Table{Applied: changed} // which read it
	d.tables.Begin(d.Meta, d.cluster.MetaTopic(), []int32{0})
	return d.Meta.Sync(ctx)
}

// Known is a topic that this process has used, or nil.
func (d *Registry) Known(topic string) *TopicState {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.topics[topic]
}

// AllKnown are the topics that this process has used.
func (d *Registry) AllKnown() []*TopicState {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.topics))
}

// ForgetTopic is told that a topic is deleted.
func (d *Registry) ForgetTopic(topic string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.topics, topic)
}

// TopicState is what this process knows of a topic that exists.
type TopicState struct {
	Name, key  string // key is its row in the meta topic
	Main       string // the Kafka topic
	Partitions int
	Grouped    atomic.Bool      // it has had a group
	spread     uint32           // where the next message without a key goes
	Dead       *compacted.Index // nil until somebody looks
	Invalid    *compacted.Index
	Bound      bound
	row        atomic.Pointer[parsedRow]
}

// parsedRow is a row of the meta topic with the record that it was read from.
type parsedRow struct {
	from *kgo.Record
	TopicRow
}

// TopicRow is a topic in the meta topic, under "t/name".
type TopicRow struct {
	Config   driver.TopicConfig
	Paused   bool `json:",omitempty"`
	Implicit bool `json:",omitempty"` // made by a publish: takes on the first configuration
	// Born tells a topic from one of the same name that was deleted before; empty: made by a version that did not say.
	Born string `json:",omitempty"`
}

// GroupRow is a group in the meta topic, under "g/topic/group".
type GroupRow struct {
	Order  driver.Order
	Fixed  bool `json:",omitempty"` // a member or a creator chose the order
	Paused bool `json:",omitempty"`
}

// TopicKey is the row of a topic.
func TopicKey(topic string) string { return "t/" + topic }

// GroupKey is the row of a group.
func GroupKey(topic, group string) string { return "g/" + topic + "/" + group }

// Put stores a row, or deletes it when it is nil, and waits until it is known here.
func (d *Registry) Put(ctx context.Context, key string, row any) error {
	r := &kgo.Record{Topic: d.cluster.MetaTopic(), Key: []byte(key)}
	if row != nil {
		r.Value, _ = json.Marshal(row) // plain data: never fails
	}
	return d.Meta.Put(ctx, r)
}

// Row reads a row, and reports whether it is there.
func (d *Registry) Row(key string, row any) bool {
	r := d.Meta.Get(key)
	return r != nil && json.Unmarshal(r.Value, row) == nil
}

// Group is the row of a group, or ErrNotFound.
func (d *Registry) Group(topic, group string) (row GroupRow, err error) {
	if !d.Row(GroupKey(topic, group), &row) {
		err = refusal.NoGroup(topic, group, d.GroupsOf(topic))
	}
	return row, err
}

// Paused reports whether deliveries to a group are stopped.
func (d *Registry) Paused(topic, group string) bool {
	var t TopicRow
	var g GroupRow
	d.Row(TopicKey(topic), &t)
	d.Row(GroupKey(topic, group), &g)
	return t.Paused || g.Paused
}

// Existing returns a topic as others left it meanwhile, or ErrNotFound.
func (d *Registry) Existing(ctx context.Context, topic string) (*TopicState, error) {
	if err := d.Meta.Sync(ctx); err != nil { // also when the driver is closed
		return nil, err
	}
	var row TopicRow
	if !d.Row(TopicKey(topic), &row) {
		d.ForgetTopic(topic)
		return nil, d.noTopic(topic)
	}
	return d.remember(ctx, topic)
}

func (d *Registry) noTopic(topic string) error {
	return driver.NoTopic(topic, slices.DeleteFunc(d.TopicNames(), driver.Reserved))
}

// Current returns a topic by what this process knows, and asks only when it knows nothing.
func (d *Registry) Current(ctx context.Context, topic string) (*TopicState, error) {
	var row TopicRow
	if d.Row(TopicKey(topic), &row) {
		return d.remember(ctx, topic)
	}
	return d.Existing(ctx, topic)
}

// RowOf is how a topic is configured.
func (d *Registry) RowOf(t *TopicState) TopicRow {
	r := d.Meta.Get(t.key)
	if have := t.row.Load(); have != nil && have.from == r {
		return have.TopicRow
	}
	row := parsedRow{from: r}
	d.Row(t.key, &row.TopicRow)
	t.row.Store(&row)
	return row.TopicRow
}

// remember keeps what publishing needs to know of a topic.
func (d *Registry) remember(ctx context.Context, topic string) (*TopicState, error) {
	if t := d.Known(topic); t != nil {
		return t, nil
	}
	n, err := d.cluster.PartitionsOf(ctx, d.cluster.MainTopic(topic))
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, d.noTopic(topic)
	}
	t := &TopicState{Name: topic, key: TopicKey(topic), Main: d.cluster.MainTopic(topic), Partitions: n}
	d.mu.Lock()
	defer d.mu.Unlock()
	if other := d.topics[topic]; other != nil {
		return other, nil
	}
	d.topics[topic] = t
	return t, nil
}

// Ensure returns a topic, made with row if it does not exist.
func (d *Registry) Ensure(ctx context.Context, topic string, row TopicRow) (*TopicState, error) {
	if d.cluster.IsClosed() {
		return nil, refusal.Closed()
	}
	if t := d.Known(topic); t != nil {
		return t, nil
	}
	if t, err := d.Existing(ctx, topic); err == nil || !cluster.IsNotFound(err) {
		return t, err
	}
	if err := d.makeTopic(ctx, topic, row); err != nil {
		return nil, err
	}
	return d.remember(ctx, topic)
}

// MayStart refuses a new group that begins in a history that its topic does not keep. A topic is not made for it.
func (d *Registry) MayStart(ctx context.Context, topic, group string, start driver.Position) error {
	if start.From == driver.FromEnd {
		return nil
	}
	t, err := d.Existing(ctx, topic)
	switch {
	case cluster.IsNotFound(err):
		return start.CheckKept(topic, 0)
	case err != nil:
		return err
	}
	if _, err := d.Group(topic, group); err == nil {
		return nil
	}
	return start.CheckKept(topic, d.RowOf(t).Config.Keep)
}

// EnsureGroup makes a group that begins at a position, if it does not exist.
func (d *Registry) EnsureGroup(ctx context.Context, t *TopicState, group string, row GroupRow,
	start driver.Position) error {
	release, err := d.cluster.Single(ctx, "group/"+t.Name+"/"+group)
	if err != nil {
		return err
	}
	defer release()
	var have GroupRow
	if !d.Row(GroupKey(t.Name, group), &have) {
		if err := d.Meta.Sync(ctx); err != nil {
			return err
		}
		if err := d.makeGroup(ctx, t, group, row, start); err != nil {
			return err
		}
		d.Row(GroupKey(t.Name, group), &have)
	}
	switch {
	case !row.Fixed || have.Fixed && have.Order == row.Order:
		return nil
	case have.Fixed:
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("group %q of topic %q is %s, not %s", group, t.Name,
			have.Order, row.Order), "use the order that its first member chose, or another group", nil)
	}
	have.Order, have.Fixed = row.Order, true
	return d.Put(ctx, GroupKey(t.Name, group), have)
}

// keepGrace is how much longer than Keep a message is shown after it was stored: it is settled a little later.
const keepGrace = 10 * time.Second

// BeginPosition is where what a topic holds begins.
var BeginPosition = driver.Position{From: driver.FromBegin}

// Position turns a place in the history into an offset of each partition.
func (d *Registry) Position(ctx context.Context, t *TopicState, p driver.Position) (map[int32]int64, error) {
	switch p.From {
	case driver.FromBegin:
		if keep := d.RowOf(t).Config.Keep; keep > 0 {
			return d.Position(ctx, t, driver.Position{From: driver.FromTime, Time: d.cluster.Now().Add(-keep - keepGrace)})
		}
		return d.cluster.Starts(ctx, t.Main)
	case driver.FromTime, driver.FromRef:
		at := p.Time
		if p.From == driver.FromRef {
			r, err := d.cluster.ReadOne(ctx, t.Main, p.Ref.Partition, int64(p.Ref.Pos)-1)
			if err != nil {
				return nil, err
			}
			if r == nil || p.Ref.Sub != 0 {
				return nil, driver.NewError(driver.ErrNotFound, fmt.Sprintf("no message %s in topic %q", p.Ref, t.Name),
					"use a Ref of a stored message", nil)
			}
			at = r.Timestamp
		}
		offsets, err := d.cluster.Offsets(ctx, func(ctx context.Context, topics ...string) (kadm.ListedOffsets, error) {
			// Kafka knows no time before 1970: numbers below zero have other meanings, such as the end.
			return d.cluster.Admin.ListOffsetsAfterMilli(ctx, max(0, at.UnixMilli()), topics...)
		}, t.Main)
		if err == nil && p.From == driver.FromRef {
			offsets[p.Ref.Partition] = int64(p.Ref.Pos) - 1
		}
		return offsets, err
	}
	return d.cluster.CommittedEnds(ctx, t.Main)
}

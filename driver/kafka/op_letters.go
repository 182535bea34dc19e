package kafka

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/consumer"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
	"github.com/ferrymq/ferry/internal/envelope"
)

// Dead letters are moved and deleted many at once: each on its own, but looked up and stored together. lettersAtOnce
// bounds their bodies in memory.
const lettersAtOnce = 100

// letterBox has the dead letters of groups.
type letterBox struct{ *Driver }

// changeLetters changes those of the requests that are about a dead letter and nothing else, and returns the others.
func (d *letterBox) changeLetters(ctx context.Context, all []request) (rest []request) {
	compare := func(a, b request) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Group, b.Group), cmp.Compare(a.to(), b.to()))
	}
	slices.SortStableFunc(all, compare)
	for len(all) > 0 {
		n := 1
		for n < min(len(all), lettersAtOnce) && compare(all[0], all[n]) == 0 {
			n++
		}
		if all[0].Group == "" {
			rest = append(rest, all[:n]...)
		} else {
			rest = append(rest, d.changeBatch(ctx, all[:n])...)
		}
		all = all[n:]
	}
	return rest
}

// letter is a dead letter with what is asked for it.
type letter struct {
	request
	entry driver.Entry
	made  *kgo.Record // what it becomes
}

// changeBatch is changeLetters for letters of one group that go to one group. Those whose message lives are left to
// others.
func (d *letterBox) changeBatch(ctx context.Context, all []request) (rest []request) {
	topic, group, to := all[0].Topic, all[0].Group, all[0].to()
	targets := make([]driver.Target, len(all))
	for i, q := range all {
		targets[i] = q.Target
	}
	var found []driver.Entry
	t, err := d.group(ctx, nil, topic, group)
	if err == nil {
		found, err = d.findLetters(ctx, t, group, targets)
	}
	var letters, ending []letter
	var entries []driver.Entry
	for i, q := range all {
		switch {
		case err != nil:
			*q.err = err
		case found[i].Dead == nil:
			rest = append(rest, q)
		default:
			letters, entries = append(letters, letter{q, found[i], nil}), append(entries, found[i])
		}
	}
	if len(letters) == 0 {
		return rest
	}
	live, err := d.groups.Lives(ctx, t, group, entries)
	var known map[string]bool
	if err == nil && to != "" {
		known, err = d.knownIn(ctx, t, to, entries)
	}
	for i, l := range letters {
		switch {
		case err != nil:
			*l.err = err
		case live[i]:
			rest = append(rest, l.request)
		case l.Death > 0 && l.entry.Dead.Rounds != l.Death-1:
			*l.err = l.Outlived()
		case known[l.entry.ID]:
			*l.err = errNotSettledIn(l.entry.ID, group, to)
		default:
			ending = append(ending, l)
		}
	}
	d.endLetters(ctx, t, ending)
	return rest
}

// knownIn returns which of some messages are unsettled or dead in a group.
func (d *letterBox) knownIn(ctx context.Context, t *registry.TopicState, group string,
	entries []driver.Entry) (map[string]bool, error) {
	known := map[string]bool{}
	targets := make([]driver.Target, len(entries))
	for i, e := range entries {
		known[e.ID] = false
		targets[i] = driver.Target{Topic: t.Name, Group: group, ID: e.ID}
	}
	vs, err := d.groups.Look(ctx, t, group)
	if err != nil {
		return nil, err
	}
	defer vs.Close()
	found := vs.Entries(func(it *consumer.Item) bool { _, asked := known[it.Msg.ID]; return asked })
	for _, f := range found {
		known[f.ID] = true
	}
	dead, err := d.findLetters(ctx, t, group, targets)
	for _, e := range dead {
		if e.Dead != nil {
			known[e.ID] = true
		}
	}
	return known, err
}

// endLetters ends letters, and stores what becomes of those that are moved.
func (d *letterBox) endLetters(ctx context.Context, t *registry.TopicState, all []letter) {
	x, err := d.registry.DeadLetters(ctx, t)
	var xs []*compacted.Contender
	var of []letter
	for _, l := range all {
		if *l.err = err; err != nil {
			continue
		}
		if l.move != nil {
			l.made = d.replayed(t, l.move, l.entry)
		}
		var c *compacted.Contender
		if c, *l.err = endOfLetter(x, t, l.entry, l.made); c != nil {
			xs, of = append(xs, c), append(of, l)
		}
	}
	if len(xs) == 0 {
		return
	}
	x.ContendAll(ctx, xs)
	for i, l := range of {
		if *l.err = xs[i].Err; *l.err == nil && l.made != nil {
			*l.err = d.groups.Taken(ctx, t, cmp.Or(l.move.To, l.entry.Group), l.made)
		}
	}
}

// endOfLetter wants to end a dead letter, and to store what it becomes if that is not nil.
func endOfLetter(x *compacted.Index, t *registry.TopicState, e driver.Entry, made *kgo.Record) (*compacted.Contender,
	error) {
	name := record.DeadName(e.Group, e.ID)
	at, ok := x.Find(name)
	if !ok {
		return nil, cluster.ErrNoMessage(driver.Target{Topic: t.Name, ID: e.ID, Ref: e.Ref})
	}
	if at.Suffix != compacted.SuffixOf(record.DeadKey(e.Group, e.ID, e.Dead.Rounds), name) {
		return nil, driver.Target{Topic: t.Name, ID: e.ID, Group: e.Group}.Outlived()
	}
	c := &compacted.Contender{Partition: int32(at.Partition), Key: name, Row: at.Offset}
	if made != nil {
		c.Made = []*kgo.Record{made}
	}
	for round := e.Dead.Rounds; round >= 0; round-- { // the older ones are what a crash may have left
		c.Ends = append(c.Ends, record.Tombstone(x.Topic, c.Partition, record.DeadKey(e.Group, e.ID, round)))
	}
	return c, nil
}

// replayed is a dead letter as its group finds it again, or another one.
func (d *letterBox) replayed(t *registry.TopicState, m *driver.Move, e driver.Entry) *kgo.Record {
	if m.To != "" { // a history is what happened in one group
		e.History = nil
	}
	return d.groups.Inserted(t, cmp.Or(m.To, e.Group), consumer.Edited(e.Message, m.Edit),
		fmt.Sprintf("r/%s/%d", e.ID, e.Dead.Rounds+1), record.State{
			After: max(0, m.After), Rounds: e.Dead.Rounds + 1, Ref: e.Ref, History: envelope.AppendHistory(nil, e.History...),
			Spared: !e.Message.PublishedAt.Add(e.TTL).After(time.Now())})
}

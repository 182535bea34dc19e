package kafka

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/consumer"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// Dead letters are moved and deleted many at once: each on its own, but looked up and stored together. lettersAtOnce
// bounds their bodies in memory.
const lettersAtOnce = 100

// letterBox has the dead letters of groups.
type letterBox struct{ *Driver }

// changeLetters changes those of the requests that are about a dead letter and nothing else, and returns the others.
func (d *letterBox) changeLetters(ctx context.Context, all []request) (rest []request) {
	type batch struct{ topic, group, to string }
	batches, order := map[batch][]request{}, []batch{}
	for _, q := range all {
		b := batch{topic: q.Topic, group: q.Group}
		if q.move != nil {
			b.to = q.move.To
		}
		if q.Group == "" {
			rest = append(rest, q)
			continue
		}
		if batches[b] == nil {
			order = append(order, b)
		}
		batches[b] = append(batches[b], q)
	}
	for _, b := range order {
		for left := batches[b]; len(left) > 0; {
			n := min(lettersAtOnce, len(left))
			rest = append(rest, d.changeBatch(ctx, b.topic, b.group, b.to, left[:n])...)
			left = left[n:]
		}
	}
	return rest
}

// changeBatch is changeLetters for letters of one group that go to one group. What it cannot look up is left to others
// too: they say why.
func (d *letterBox) changeBatch(ctx context.Context, topic, group, to string, all []request) (rest []request) {
	t, err := d.group(ctx, nil, topic, group)
	if err != nil {
		return all
	}
	targets := make([]driver.Target, len(all))
	for i, q := range all {
		targets[i] = q.Target
	}
	found, err := d.findLetters(ctx, t, group, targets)
	if err != nil {
		return all
	}
	var letters []letter
	for i, q := range all {
		if found[i].Dead == nil {
			rest = append(rest, q)
		} else {
			letters = append(letters, letter{q, found[i], nil})
		}
	}
	letters, living := d.withoutLiving(ctx, t, group, letters)
	rest = append(rest, living...)
	letters = d.withoutKnown(ctx, t, to, letters)
	d.endLetters(ctx, t, letters)
	return rest
}

// letter is a dead letter with what is asked for it.
type letter struct {
	request
	entry driver.Entry
	made  *kgo.Record // what it becomes
}

// withoutLiving leaves out letters that are not the ones that are meant, and those whose message lives.
func (d *letterBox) withoutLiving(ctx context.Context, t *registry.TopicState, group string,
	all []letter) (left []letter, living []request) {
	entries := make([]driver.Entry, len(all))
	for i, l := range all {
		entries[i] = l.entry
	}
	live, err := d.groups.Lives(ctx, t, group, entries)
	for i, l := range all {
		switch {
		case err != nil:
			*l.err = err
		case live[i]:
			living = append(living, l.request)
		case l.Death > 0 && l.entry.Dead.Rounds != l.Death-1:
			*l.err = l.Outlived()
		default:
			left = append(left, l)
		}
	}
	return left, living
}

// withoutKnown leaves out letters that are to go to another group which has not settled their message.
func (d *letterBox) withoutKnown(ctx context.Context, t *registry.TopicState, to string, all []letter) (left []letter) {
	if to == "" || len(all) == 0 {
		return all
	}
	ids := map[string]bool{}
	targets := make([]driver.Target, len(all))
	for i, l := range all {
		ids[l.entry.ID] = true
		targets[i] = driver.Target{Topic: t.Name, Group: to, ID: l.entry.ID}
	}
	known, err := d.knownIn(ctx, t, to, ids)
	var dead []driver.Entry
	if err == nil {
		dead, err = d.findLetters(ctx, t, to, targets)
	}
	for i, l := range all {
		switch {
		case err != nil:
			*l.err = err
		case known[l.entry.ID] || dead[i].Dead != nil:
			*l.err = errNotSettledIn(l.entry.ID, l.Group, to)
		default:
			left = append(left, l)
		}
	}
	return left
}

// knownIn returns which of some ids are unsettled in a group.
func (d *letterBox) knownIn(ctx context.Context, t *registry.TopicState, group string,
	ids map[string]bool) (map[string]bool, error) {
	vs, err := d.groups.Look(ctx, t, group)
	if err != nil {
		return nil, err
	}
	defer vs.Close()
	known := map[string]bool{}
	for _, f := range vs.Entries(func(it *consumer.Item) bool { return ids[it.Msg.ID] }) {
		known[f.ID] = true
	}
	return known, nil
}

// endLetters ends letters, and stores what becomes of those that are moved.
func (d *letterBox) endLetters(ctx context.Context, t *registry.TopicState, all []letter) {
	x, err := d.registry.DeadLetters(ctx, t)
	var xs []*compacted.Contender
	var of []*letter
	for i := range all {
		l := &all[i]
		if err != nil {
			*l.err = err
			continue
		}
		if l.move != nil {
			l.made = d.replayed(t, l.move, l.entry)
		}
		c, err := endOfLetter(x, t, l.entry, l.made)
		if err != nil {
			*l.err = err
			continue
		}
		xs, of = append(xs, c), append(of, l)
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
	return &compacted.Contender{Partition: int32(at.Partition), Key: name, Row: at.Offset,
		Change: func(context.Context) (records, ends []*kgo.Record, err error) {
			if made != nil {
				records = []*kgo.Record{made}
			}
			for round := e.Dead.Rounds; round >= 0; round-- { // the older ones are what a crash may have left
				ends = append(ends, record.Tombstone(x.Topic, int32(at.Partition), record.DeadKey(e.Group, e.ID, round)))
			}
			return records, ends, nil
		}}, nil
}

// replayed is a dead letter as its group finds it again, or another one.
func (d *letterBox) replayed(t *registry.TopicState, m *driver.Move, e driver.Entry) *kgo.Record {
	return d.groups.Inserted(t, cmp.Or(m.To, e.Group), consumer.Edited(e.Message, m.Edit),
		fmt.Sprintf("r/%s/%d", e.ID, e.Dead.Rounds+1), record.State{
			After: max(0, m.After), Rounds: e.Dead.Rounds + 1, Ref: e.Ref,
			Spared: !e.Message.PublishedAt.Add(e.TTL).After(time.Now())})
}

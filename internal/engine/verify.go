package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ferrymq/ferry/internal/kv"
)

// Records is what Verify reads of a Store.
type Records interface {
	Read(keys [][]byte, use func(i int, value []byte)) error
	Scan(from, to []byte, use func(key, value []byte) error) error
}

// Tally is what Verify has looked at.
type Tally struct {
	Topics, Messages, Records int
	Bytes                     int64
}

// Verify reads every record of a store that nobody uses, bodies included: each must have the right checksum, belong
// to something, and all together must give the counts of their topics. It needs no memory for messages. Problem is
// told each thing that is wrong; what a damaged part hides is not looked at, the parts behind it are.
func Verify(ctx context.Context, s Records, problem func(text string)) (Tally, error) {
	v := &verifier{s: s, problem: problem}
	v.system()
	numbers, err := topicNumbers(s)
	if err != nil {
		problem(fmt.Sprintf("the records cannot be read: %v", err))
	}
	for _, n := range numbers {
		if err := v.topic(ctx, n); err != nil {
			return v.tally, err
		}
	}
	return v.tally, nil
}

type verifier struct {
	s       Records
	tally   Tally
	problem func(string)
}

// system looks at what belongs to no topic: how often the store was opened, named values, and what the store itself
// keeps there.
func (v *verifier) system() {
	boot := string(appendPrefix(nil, 0, kindBoot))
	from, to := rangeOfTopic(0)
	named := kv.NewLocal(kv.LocalOptions{})
	err := v.s.Scan(from, to, func(key, value []byte) error {
		v.tally.Records++
		v.tally.Bytes += int64(len(key) + len(value))
		if string(key) == boot && len(value) != 8 {
			v.problem("the record of how often the store was opened is damaged")
		}
		if key[prefixSize-1] == kindKV {
			if err := named.Restore(key[prefixSize:], value); err != nil {
				v.problem(fmt.Sprintf("the record of a named value, key %x, is damaged: %v", key, err))
			}
		}
		return nil
	})
	if err != nil {
		v.problem(fmt.Sprintf("the records of the store itself cannot be read: %v", err))
	}
}

// verifiedTopic is one topic that is looked at.
type verifiedTopic struct {
	*verifier
	number uint32
	stored *topicRecord
	counts [invalid + 1]int64
	groups map[uint32]*[done + 1]int64
	pairs  pairing
	plain  storedState // scratch
}

// topic returns an error only when the context ends.
func (v *verifier) topic(ctx context.Context, number uint32) error {
	t := &verifiedTopic{verifier: v, number: number, groups: map[uint32]*[done + 1]int64{}}
	v.tally.Topics++
	stored, problem, err := readTopic(t.s, number, moment{})
	if err := cmp.Or(err, problem); err != nil {
		t.wrong("its record is damaged: %v", err)
		return nil
	}
	t.stored = stored
	for _, g := range stored.groups {
		t.groups[g.number] = new([done + 1]int64)
	}
	t.pairs = pairing{topic: t.stored.name, use: t.message, wrong: t.damaged}
	from, to := rangeOfTopic(number)
	n := 0
	err = v.s.Scan(from, to, func(key, value []byte) error {
		v.tally.Records++
		v.tally.Bytes += int64(len(key) + len(value))
		t.record(key, value)
		if n++; n%1024 == 0 {
			return ctx.Err()
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		t.wrong("its records cannot be read: %v", err) // their sum would say nothing
		return nil
	}
	t.pairs.pass(nil)
	t.balance()
	return nil
}

func (t *verifiedTopic) wrong(format string, args ...any) {
	name := fmt.Sprintf("topic number %d", t.number)
	if t.stored != nil {
		name = fmt.Sprintf("topic %q", t.stored.name)
	}
	t.problem(name + ": " + fmt.Sprintf(format, args...))
}

func (t *verifiedTopic) record(key, value []byte) {
	if len(key) < prefixSize || binary.BigEndian.Uint32(key) != t.number {
		t.wrong("key %x is not one of this program", key)
		return
	}
	var err error
	switch kind := key[prefixSize-1]; kind {
	case kindMessage:
		err = t.pairs.record(key, value)
	case kindClaim:
		err = readRecord(value, &claimRecord{}, moment{})
	case kindIndex:
		x := indexReader{cold: storedCold{tail: &coldTail{}}, use: func(*found, *storedState) {}}
		err = x.read(key, value)
	case kindStretch:
		first, _, _ := numberOf(key)
		err = readRecord(value, &storedStretch{stretch: stretch{first: first}}, moment{})
	case kindDedup, kindOwnID:
		err = readRecord(value, &known{}, moment{})
	case kindTopic: // has been read
	default:
		t.wrong("key %x is not one of this program", key)
	}
	if err != nil {
		t.wrong("the record with key %x is damaged: %v", key, err)
	}
}

// message counts a message where its state, or without one its head, says that it is.
func (t *verifiedTopic) message(f *found, s *storedState) {
	t.tally.Messages++
	if f.seq < t.stored.head || f.seq > t.stored.seq {
		t.wrong("message 0-%d lies outside of the log, which goes from %d to %d", f.seq, t.stored.head, t.stored.seq)
	}
	if s == nil {
		s = &t.plain
		s.unchanged(f.head, t.stored.groups)
	}
	if f.problem != nil && s.state != invalid { // those among the parse errors are known
		t.wrong("message 0-%d cannot be decoded, and goes to the parse errors when it is claimed: %v", f.seq, f.problem)
	}
	t.counts[s.state]++
	for i := range s.items {
		if c := t.groups[s.items[i].group]; c != nil && s.state == fanned {
			c[s.items[i].state]++
		}
	}
}

// damaged is told what is wrong with a message or its state. What lies behind it is looked at, too.
func (t *verifiedTopic) damaged(record, problem string, cause error) error {
	if cause != nil {
		problem = fmt.Sprintf("%s: %v", problem, cause)
	}
	t.wrong("%s %s", record, problem)
	return nil
}

// balance compares the sums with the counters of the topic.
func (t *verifiedTopic) balance() {
	stats := t.stored.stats
	stats.Topic, stats.Delayed, stats.Held = t.stored.name, t.counts[delayed], t.counts[held]
	for _, g := range t.stored.groups {
		s, c := g.stats, t.groups[g.number]
		s.Group, s.Ready, s.Waiting, s.Dead = g.name, c[ready], c[waiting], c[dead]
		stats.Groups = append(stats.Groups, s)
	}
	for _, text := range stats.Unbalanced() {
		t.problem(text)
	}
}

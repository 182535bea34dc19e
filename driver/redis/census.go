package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

const (
	segmentSize = 1024
	maxSeq      = 100_000_000_000_000 // numbers below are exact in scripts
)

// census is one look at everything in a shard.
type census struct {
	s        *shard
	fields   map[string]string
	messages map[string]*resident // by sequence number
	seqs     []uint64             // in order
	pending  map[string]string
	due      map[string]bool // delayed or held
	ids      map[string]string
	live     map[string]string
	graves   map[string]string
	checked  int
	defects  []defect
}

// resident is one message that is there.
type resident struct {
	id   string
	item string
	size int64
}

// look reads a shard and lists what is wrong with it.
func (s *shard) look(ctx context.Context) (*census, error) {
	c := &census{s: s, messages: map[string]*resident{}, due: map[string]bool{}}
	if _, err := s.overAll(ctx, &s.d.scripts.stats, nil); err != nil { // so that the groups are known
		return nil, err
	}
	if err := c.readTopic(ctx); err != nil {
		return nil, err
	}
	if err := c.readBodies(ctx); err != nil {
		return nil, err
	}
	c.checkTopic()
	for i, name := range s.groups().names {
		g := &groupCensus{c: c, name: name, keys: s.groups().keys[topicKeys+i*groupKeys:]}
		if err := g.read(ctx); err != nil {
			return nil, err
		}
		g.check()
	}
	c.checkTotals()
	return c, nil
}

func (c *census) wrong(kind, group, what, first, second, text string) {
	seq, id := first, ""
	if it, ok := parseItem(first); ok {
		seq = it.seq
	}
	if m := c.messages[seq]; m != nil {
		id = unindexID(m.id)
	}
	c.defects = append(c.defects, defect{Problem: driver.Problem{Kind: kind, Group: group, ID: id, Text: text}, what: what,
		first: first, second: second})
}

func (c *census) readTopic(ctx context.Context) error {
	err := c.hashes(ctx, c.s.keys, map[int]*map[string]string{keyTopic: &c.fields, keyPending: &c.pending,
		keyIDs: &c.ids, keyLive: &c.live, keyGraves: &c.graves})
	if err != nil {
		return err
	}
	return c.members(ctx, c.s.keys, map[int]map[string]bool{keyDelayed: c.due, keyHeld: c.due})
}

// hashes reads some whole.
func (c *census) hashes(ctx context.Context, keys []string, into map[int]*map[string]string) error {
	for key, hash := range into {
		*hash = map[string]string{}
		if err := c.each(ctx, keys[key], func(field, value string) { (*hash)[field] = value }); err != nil {
			return err
		}
		delete(*hash, paddingID)
	}
	return nil
}

// members reads sets.
func (c *census) members(ctx context.Context, keys []string, into map[int]map[string]bool) error {
	for key, set := range into {
		if err := c.each(ctx, keys[key], func(member, _ string) { set[member] = true }); err != nil {
			return err
		}
	}
	return nil
}

// each goes through what is in a key: fields and values of a hash, in small steps, and members of what has no values.
func (c *census) each(ctx context.Context, key string, do func(member, value string)) (err error) {
	client := c.s.d.client
	var list []string
	switch typeOf(key) {
	case "hash":
		fields := client.HScan(ctx, key, 0, "", 200).Iterator()
		for fields.Next(ctx) {
			field := fields.Val()
			fields.Next(ctx)
			do(field, fields.Val())
		}
		return redisconn.Classify(fields.Err())
	case "zset":
		list, err = client.ZRange(ctx, key, 0, -1).Result()
	case "set":
		list, err = client.SMembers(ctx, key).Result()
	case "list":
		for from := 0; err == nil && from == len(list); from += 1000 { // until a page is not full
			var page []string
			page, err = client.LRange(ctx, key, int64(from), int64(from+999)).Result()
			list = append(list, page...)
		}
	}
	for _, member := range list {
		do(member, "")
	}
	return redisconn.Classify(err)
}

// readBodies reads every message, and compares the segments with what is there.
func (c *census) readBodies(ctx context.Context) error {
	var sizes map[string]string
	if err := c.hashes(ctx, c.s.keys, map[int]*map[string]string{keySizes: &sizes}); err != nil {
		return err
	}
	bodies := c.s.keys[keyBodies]
	err := c.each(ctx, bodies, func(field, body string) {
		if isSeq(field) {
			c.add(field, body)
		} else if field != padding {
			c.wrong("foreign", "", "foreign", field, "",
				fmt.Sprintf("the key %s has a field %q, which is no number of a message", bodies, field))
		}
	})
	if err != nil {
		return err
	}
	found := map[string]int{}
	for seq := range c.messages {
		n, _ := strconv.ParseUint(seq, 10, 64)
		c.seqs = append(c.seqs, n)
		found[strconv.FormatUint(n/segmentSize, 10)]++
	}
	slices.Sort(c.seqs)
	c.checked = len(c.messages)
	return c.checkSegments(ctx, sizes, found)
}

// isSeq reports whether a text is the number of a message.
func isSeq(text string) bool {
	n, err := strconv.ParseUint(text, 10, 64)
	return err == nil && n > 0 && n < maxSeq && strconv.FormatUint(n, 10) == text
}

// checkSegments compares the segments, and how many messages each should have, with those that were found.
func (c *census) checkSegments(ctx context.Context, sizes map[string]string, found map[string]int) error {
	segments, err := c.s.d.client.ZRangeWithScores(ctx, c.s.keys[keySegments], 0, -1).Result()
	if err != nil {
		return redisconn.Classify(err)
	}
	listed := map[string]bool{}
	for _, z := range segments {
		segment, _ := z.Member.(string)
		listed[segment] = strconv.FormatFloat(z.Score, 'f', -1, 64) == segment
		if _, ok := sizes[segment]; !ok {
			sizes[segment] = "" // so that it is looked at below
		}
	}
	for segment, n := range found {
		if sizes[segment] != strconv.Itoa(n) || !listed[segment] {
			c.wrong("segment", "", "segment", segment, "",
				fmt.Sprintf("segment %s has %d messages, not %q, or is listed in another place", segment, n, sizes[segment]))
		}
		delete(sizes, segment)
	}
	for segment := range sizes {
		c.wrong("segment", "", "segment", segment, "", "segment "+segment+" has no messages")
	}
	return nil
}

func (c *census) add(seq, body string) {
	r := &resident{size: int64(len(body)), item: "1" + seq + "@0"}
	if m, err := envelope.Decode([]byte(body)); err == nil {
		r.id = indexID(m.ID)
		if it, ok := parseItem(c.ids[r.id]); ok && it.seq == seq {
			m.PublishedAt = it.published
		}
		r.item = itemText(m, seq)
	}
	c.messages[seq] = r
}

// checkTopic compares messages with the index and with what is delayed or held.
func (c *census) checkTopic() {
	for _, n := range c.seqs {
		seq := strconv.FormatUint(n, 10)
		r := c.messages[seq]
		head, _, _ := strings.Cut(r.item, ":")
		if _, ok := c.ids[r.id]; !ok && r.id != "" {
			c.wrong("id", "", "id", r.id, head, "the message is not in the index")
		}
		_, pending := c.pending[seq]
		if pending != c.due[seq] {
			c.wrong("pending", "", "pending", seq, r.item, "the message is delayed or held only half")
		}
	}
	for id, entry := range c.ids {
		if it, ok := parseItem(entry); !ok || c.messages[it.seq] == nil {
			c.wrong("id", "", "stale id", id, "", "the index names a message that is gone")
		}
	}
	for seq := range c.pending {
		if c.messages[seq] == nil {
			c.wrong("pending", "", "pending", seq, "", "a message that is gone is delayed or held")
		}
	}
	for seq := range c.due {
		if _, pending := c.pending[seq]; c.messages[seq] == nil && !pending {
			c.wrong("pending", "", "pending", seq, "", "a message that is gone is delayed or held")
		}
	}
}

// belongs reports whether a group with this letter has not settled a message.
func (c *census) belongs(seq, letter string) bool {
	if _, pending := c.pending[seq]; pending || c.due[seq] || c.messages[seq] == nil {
		return false
	}
	live, ok := c.live[seq]
	if !ok {
		live = c.fields["solo"]
	}
	return strings.Contains(live, letter)
}

// checkTotals compares the counters of the topic with what is there.
func (c *census) checkTotals() {
	var messages, bytes int64
	for seq, r := range c.messages {
		if live, ok := c.live[seq]; ok && live == "" {
			continue
		}
		messages++
		bytes += r.size
	}
	c.off("", "messages", redisshell.Whole(c.fields, "messages"), messages)
	c.off("", "bytes", redisshell.Whole(c.fields, "bytes"), bytes)
}

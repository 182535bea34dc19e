package kafka

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// call is what the messages of one publish have in common.
type call struct {
	posts  []posting
	at     []int // which message each is of
	claims bool  // one of them made us remember its id

	room    []kgo.Record // for its records, and their headers
	headers []kgo.RecordHeader
	scratch *scratch    // for their bytes
	borrows bool        // bodies stay as they are until the answer
	topic   *topicState // of the last message
	config  driver.TopicConfig
	stick   int // how many in a row without a key go to the same partition
	spread  *topicState
	chosen  int32
	sticked int // how many more go to chosen
}

// posting is one message on its way.
type posting struct {
	record *kgo.Record
	later  bool     // it is not due
	claims []string // what it made us remember
}

// manySpread is how many messages without a key a partition gets at least from a call that has as many: batches are what is cheap for everybody.
const manySpread = 100

// newCall is for n messages. Few are spread over all partitions one by one; of many the partitions get long batches.
func newCall(n int) *call {
	return &call{scratch: new(scratch), posts: make([]posting, 0, n), at: make([]int, 0, n), room: make([]kgo.Record, n), headers: make([]kgo.RecordHeader, n*fewHeaders), stick: max(1, n/2, min(n, manySpread))}
}

// fewHeaders are enough for the record of a message with nothing special.
const fewHeaders = 2

// record is that of a message.
func (c *call) record(topic string, partition int32, m *driver.Message) *kgo.Record {
	if len(c.room) == 0 {
		return toRecord(topic, partition, m)
	}
	r := &c.room[0]
	r.Headers = c.headers[:0:fewHeaders]
	c.room, c.headers = c.room[1:], c.headers[fewHeaders:]
	var body []byte
	if c.borrows && m.Body != nil {
		body = m.Body[:len(m.Body):len(m.Body)]
	}
	writeRecord(r, c.scratch, body, topic, partition, m)
	return r
}

// place chooses a partition: by key, or in turn.
func (c *call) place(t *topicState, key string) int32 {
	if key != "" {
		return partitionOf(key, t.partitions)
	}
	if c.spread != t || c.sticked == 0 {
		c.spread, c.sticked = t, c.stick
		if c.stick <= t.partitions {
			c.sticked = 1
		}
		c.chosen = t.inTurn()
	}
	c.sticked--
	return c.chosen
}

// place chooses a partition: by key, or in turn.
func (d *Driver) place(t *topicState, key string) int32 {
	if key != "" {
		return partitionOf(key, t.partitions)
	}
	return t.inTurn()
}

// inTurn is the next partition.
func (t *topicState) inTurn() int32 {
	return int32(atomic.AddUint32(&t.spread, 1) % uint32(t.partitions))
}

func (p *posting) ref() driver.Ref {
	if p.later {
		return laterRef(p.record)
	}
	return refOf(p.record)
}

// receipts says in each receipt what became of its record.
func (c *call) receipts(rs []driver.Receipt, errs []error) {
	for n, err := range errs {
		r := &rs[c.at[n]]
		if r.Err = err; err == nil {
			r.Ref = c.posts[n].ref()
		}
	}
}

// resolve says what became of the ids of all.
func (c *call) resolve(known *remembered, stored bool) {
	for i := range c.posts {
		known.resolve(c.posts[i].claims, stored)
	}
}

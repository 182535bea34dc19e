package publisher

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/delay"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// Call is what the messages of one publish have in common.
type Call struct {
	Posts    []Posting
	reserves bool // one of them made us remember its id
	within   within

	spare   []kgo.Record // for its records, and their headers
	headers []kgo.RecordHeader
	scratch *record.Scratch      // for their bytes
	borrows bool                 // bodies stay as they are until the answer
	topic   *registry.TopicState // of the last message
	row     registry.TopicRow    // its own
	stick   int                  // how many in a row without a key go to the same partition
	spread  *registry.TopicState
	chosen  int32
	sticked int // how many more go to chosen
}

// Posting is one message on its way.
type Posting struct {
	Record   *kgo.Record
	of       int      // which message of the call it is
	later    bool     // it is not due
	Reserved []string // what it made us remember
}

// manySpread is how many messages without a key a partition gets at least from a call that has as many: batches are
// what is cheap for everybody.
const manySpread = 100

// newCall is for n messages. Few are spread over all partitions one by one; of many the partitions get long batches.
func newCall(n int, w within) *Call {
	return &Call{within: w, scratch: new(record.Scratch), Posts: make([]Posting, 0, n),
		spare: make([]kgo.Record, n), headers: make([]kgo.RecordHeader, n*fewHeaders), stick: max(1, n/2, min(n, manySpread))}
}

// fewHeaders are enough for the record of a message with nothing special.
const fewHeaders = 2

// record is that of a message.
func (c *Call) record(topic string, partition int32, m *driver.Message) *kgo.Record {
	r := &c.spare[0]
	r.Headers = c.headers[:0:fewHeaders]
	c.spare, c.headers = c.spare[1:], c.headers[fewHeaders:]
	var body []byte
	if c.borrows && m.Body != nil {
		body = m.Body[:len(m.Body):len(m.Body)]
	}
	record.WriteRecord(r, c.scratch, body, topic, partition, m)
	return r
}

// partitionFor chooses a partition: by key, or in turn.
func (c *Call) partitionFor(t *registry.TopicState, key string) int32 {
	if key != "" {
		return record.PartitionOf(key, t.Partitions)
	}
	if c.spread != t || c.sticked == 0 {
		c.spread, c.sticked = t, c.stick
		if c.stick <= t.Partitions {
			c.sticked = 1
		}
		c.chosen = t.InTurn()
	}
	c.sticked--
	return c.chosen
}

func (p *Posting) ref() driver.Ref {
	if p.later {
		return delay.LaterRef(p.Record)
	}
	return record.RefOf(p.Record)
}

// receipts says in each receipt what became of its record.
func (c *Call) receipts(rs []driver.Receipt, errs []error) {
	for n, err := range errs {
		p := &c.Posts[n]
		r := &rs[p.of]
		if r.Err = err; err == nil {
			r.Ref = p.ref()
		}
	}
}

// Resolve says what became of the ids of all.
func (c *Call) Resolve(known *dedupIDs, stored bool) {
	for i := range c.Posts {
		known.Resolve(c.Posts[i].Reserved, stored)
	}
}

package result

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// buckets is over how many results are spread: each is one slot or partition of the backend, and holds
// driver.MaxValues.
const buckets = 64

// place is where the result of one message lies.
type place struct {
	broker           *ferry.Broker
	topic, group, id string
	bucket, name     string
}

// placeOf names it. Names of topics and groups, and ids, are so short that what they make is shorter than
// driver.MaxValueName.
func placeOf(b *ferry.Broker, topic, group, id string) place {
	name := topic + "/" + group + "/" + id
	h := fnv.New32a()
	_, _ = h.Write([]byte(name[:len(name)-len(id)+shared(id)])) // never fails
	return place{b, topic, group, id, bucketNames[h.Sum32()%buckets], name}
}

// shared is how many bytes of an id say in which bucket its result lies. Ids that Ferry makes begin with the time:
// messages of the same 16 ms share a bucket, and as they tend to end together too, many results are written to few
// buckets at a time. Of other ids all bytes count.
func shared(id string) int {
	const sixteenth = len("01234567-89a") // all digits of its milliseconds but the last
	if len(id) == 36 && id[8] == '-' && id[13] == '-' && id[14] == '7' {
		return sixteenth
	}
	return len(id)
}

// bucketNames are the names of the buckets.
var bucketNames = func() (names [buckets]string) {
	for i := range names {
		names[i] = fmt.Sprintf("%s.%02x", driver.ResultsBucket, i)
	}
	return names
}()

// check says what is wrong with a place, or nil.
func (p place) check() error {
	if p.broker == nil {
		return errNilBroker
	}
	if err := driver.CheckTopic(p.topic); err != nil {
		return err
	}
	if err := driver.CheckName("group", p.group); err != nil {
		return err
	}
	if p.id == "" {
		return driver.NewError(ferry.ErrInvalid, "the id of the message is empty", "use that of the receipt", nil)
	}
	if len(p.id) > driver.MaxIDLen { // nobody would ever answer
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("no message has an id of %d bytes", len(p.id)),
			"use that of the receipt", nil)
	}
	return nil
}

var errNilBroker = driver.NewError(ferry.ErrInvalid, "the broker is nil",
	"open one first, with open.URL for example", nil)

func (p place) String() string {
	return fmt.Sprintf("message %.80q of topic %s, group %s", p.id, p.topic, p.group)
}

// read returns what is kept, and false if that is nothing.
func (p place) read(ctx context.Context) (Status, bool, error) {
	vs, err := p.broker.Driver().KV().Get(ctx, p.bucket, p.name)
	if err != nil || vs[0].Revision == 0 {
		return Status{}, false, err
	}
	s, _, err := decode(vs[0])
	return s, err == nil, err
}

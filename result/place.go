package result

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// buckets is over how many results are spread: each is one slot or partition of the backend, and holds driver.MaxValues.
const buckets = 64

// place is where the result of one message lies.
type place struct {
	broker           *ferry.Broker
	topic, group, id string
	bucket, name     string
}

// placeOf names it. Names of topics and groups, and ids, are so short that what they make is shorter than driver.MaxValueName.
func placeOf(b *ferry.Broker, topic, group, id string) place {
	name := topic + "/" + group + "/" + id
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return place{b, topic, group, id, fmt.Sprintf("%s.%02x", driver.ResultsBucket, h.Sum32()%buckets), name}
}

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
	return nil
}

var errNilBroker = driver.NewError(ferry.ErrInvalid, "the broker is nil", "open one first, with open.URL for example", nil)

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

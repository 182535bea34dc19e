package redis

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// StoreRaw puts bytes into a topic that are no envelope.
func (d *Driver) StoreRaw(ctx context.Context, topic string, raw []byte) error {
	t, err := d.ensure(ctx, topic, 0)
	if err != nil {
		return err
	}
	p := &publication{d: d, msgs: []*driver.Message{{Topic: topic}}, rs: make([]driver.Receipt, 1)}
	x := newShardPublish(t, t.shards[0], nil, 1)
	x.put(0, nil, raw, p.msgs[0])
	p.send(ctx, x)
	return p.rs[0].Err
}

// Prefix returns the namespace.
func (d *Driver) Prefix() string { return d.o.Prefix }

// AllKeys returns the keys of a topic shard and of one group in it.
func AllKeys(tag, group string) []string { return append(keysOfTopic(tag), keysOfGroup(tag, group)...) }

// Waiting returns how many calls of Receive have found nothing.
func Waiting(s driver.Subscription) int {
	sub := s.(*subscription)
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return len(sub.waiting)
}

// Deafen makes a driver miss all announcements.
func (d *Driver) Deafen() { d.wake.Close() }

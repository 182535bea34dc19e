package redis

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// StoreRaw puts bytes into a topic that are no envelope.
func (d *Driver) StoreRaw(ctx context.Context, topic string, raw []byte) error {
	t, err := d.topics.Ensure(ctx, topic, 0)
	if err != nil {
		return err
	}
	p := d.publication([]*driver.Message{{Topic: topic}}, driver.PublishOptions{})
	x := newShardPublish(t.Parts[0], nil, 1)
	x.put(0, nil, raw, p.Messages[0])
	p.send(ctx, x)
	return p.Receipts[0].Err
}

// Prefix returns the namespace.
func (d *Driver) Prefix() string { return d.o.Prefix }

// AllKeys returns the keys of a topic shard and of one group in it.
func AllKeys(tag, group string) []string { return append(keysOfTopic(tag), keysOfGroup(tag, group)...) }

// Waiting returns how many calls of Receive have found nothing.
func Waiting(s driver.Subscription) int {
	sub := s.(*subscription)
	sub.Mu.Lock()
	defer sub.Mu.Unlock()
	return len(sub.waiting)
}

// Deafen makes a driver miss all announcements.
func (d *Driver) Deafen() { d.wake.Close() }

// ClaimWord is a word that a claim has, and nothing else.
func (d *Driver) ClaimWord() string {
	call := d.scripts.claim.In(context.Background(), d.shell.Client.Pipeline(), []string{""}) // which is not sent
	return call.Args()[1].(string)
}

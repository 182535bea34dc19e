package redisstream

import (
	"context"
	"strings"
)

// StoreRaw puts an entry into a topic that is no message.
func (d *Driver) StoreRaw(ctx context.Context, topic string, raw []byte) error {
	t, err := d.ensure(ctx, topic, 0)
	if err != nil {
		return err
	}
	stream := strings.TrimSuffix(t.parts[0].key, "topic") + "stream"
	return d.client.Do(ctx, "XADD", stream, "*", "what", raw).Err()
}

// Prefix returns the namespace.
func (d *Driver) Prefix() string { return d.o.Prefix }

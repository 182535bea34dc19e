package redisstream

import (
	"context"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// StoreRaw puts an entry into a topic that is no message.
func (d *Driver) StoreRaw(ctx context.Context, topic string, raw []byte) error {
	t, err := d.topics.Ensure(ctx, topic, 0)
	if err != nil {
		return err
	}
	stream := strings.TrimSuffix(t.Parts[0].key, "topic") + "stream"
	return d.client.Do(ctx, "XADD", stream, "*", "what", raw).Err()
}

// TrimAs applies the retention of the first partition as an owner does.
func (d *Driver) TrimAs(ctx context.Context, topic, group, member, epoch string) (driver.TrimReport, error) {
	t, err := d.topics.Existing(ctx, topic)
	if err != nil {
		return driver.TrimReport{}, err
	}
	report, _, err := t.Parts[0].trim(ctx, group, member, epoch)
	return report, err
}

// Prefix returns the namespace.
func (d *Driver) Prefix() string { return d.o.Prefix }

// ClaimWord is a word that a claim has, and nothing else.
func (d *Driver) ClaimWord() string {
	call := d.scripts.claim.In(context.Background(), d.shell.Client.Pipeline(), []string{""}) // which is not sent
	return call.Args()[1].(string)
}

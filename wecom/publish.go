package wecom

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"

	"github.com/ferrymq/ferry"
)

// publish stores messages in their order and returns when the broker has all of them.
func (p *Pipeline) publish(ctx context.Context, account string, raw []json.RawMessage) error {
	ms := make([]*ferry.Message, len(raw))
	for i, one := range raw {
		ms[i] = p.envelope(account, one)
	}
	receipts, err := p.broker.PublishBatch(ctx, ms)
	if errors.Is(err, ferry.ErrTooLarge) {
		receipts, err = p.publishSingly(ctx, ms)
	}
	if err != nil {
		return err
	}
	p.stats.published(receipts)
	return nil
}

// publishSingly stores messages one by one, so that one that is too large for the broker does not hold up its account
// for ever: of that the beginning is stored. What was stored before is recognised.
func (p *Pipeline) publishSingly(ctx context.Context, ms []*ferry.Message) ([]ferry.Receipt, error) {
	receipts := make([]ferry.Receipt, 0, len(ms))
	for _, m := range ms {
		got, err := p.broker.PublishBatch(ctx, []*ferry.Message{m})
		if errors.Is(err, ferry.ErrTooLarge) {
			p.log.WarnContext(ctx, "a message of WeCom is too large for the broker: its beginning is published", "id", m.ID,
				"bytes", len(m.Body), "err", err)
			got, err = p.broker.PublishBatch(ctx, []*ferry.Message{cut(m)})
			p.stats.cutOff(got)
		}
		if err != nil {
			return nil, err
		}
		receipts = append(receipts, got...)
	}
	return receipts, nil
}

// cutTo is how much of a message is left that is too large.
const cutTo = 1 << 10

// cut returns the beginning of a message under its id. No beginning of a JSON object is one: it becomes a parse error
// of whoever handles it, and its headers tell whose it was.
func cut(m *ferry.Message) *ferry.Message {
	beginning := *m
	beginning.Headers = maps.Clone(m.Headers)
	beginning.Headers[HeaderSize] = strconv.Itoa(len(m.Body))
	beginning.Body = m.Body[:min(len(m.Body), cutTo)]
	return &beginning
}

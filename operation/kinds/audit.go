package kinds

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/operation"
)

// Audit looks at every message of a topic, as Driver.Audit does. Done counts the messages that were looked at, and Why
// the problems that were found, by their kind.
type Audit struct {
	Topic string `json:"topic"`
	// Fix repairs what is found. A dry run never does.
	Fix bool `json:"fix,omitempty"`
}

// Request returns what Queue.Submit takes.
func (a Audit) Request() operation.Request { return operation.Request{Kind: TopicAudit, Args: a} }

func (a Audit) check() error { return driver.CheckName("topic", a.Topic) }

func (a Audit) run(ctx context.Context, b *ferry.Broker, t *operation.Task) error {
	r, err := b.Driver().Audit(ctx, a.Topic, a.Fix && !t.DryRun()) // it may be repeated: a repair is idempotent
	if err != nil {
		return err
	}
	t.Scanned(int64(r.Checked), int64(r.Checked))
	t.Did(r.Checked)
	for _, p := range r.Problems {
		kind := p.Kind
		if p.Fixed {
			kind += " (repaired)"
		}
		t.Skip(1, errors.New(kind))
	}
	return nil
}

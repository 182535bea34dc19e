package elasticmq

import (
	"context"
	"encoding/base64"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/ferrymq/ferry/bench/system"
)

// most is the largest batch of SQS.
const most = 10

type publisher struct{ s *session }

func (publisher) KeepsBodies() bool { return false }

// single is a request that sends one message.
type single struct {
	Queue string `json:"QueueUrl"`
	Body  string `json:"MessageBody"`
}

// sending is a request that sends several.
type sending struct {
	Queue   string  `json:"QueueUrl"`
	Entries []entry `json:"Entries"`
}

type entry struct {
	ID   string `json:"Id"`
	Body string `json:"MessageBody"`
}

func (p publisher) Publish(ctx context.Context, m system.Message) error {
	return p.s.call(ctx, "SendMessage", single{p.s.queue, base64.StdEncoding.EncodeToString(m.Body)}, nil)
}

// PublishBatch sends as many as fit into each request, all at once.
func (p publisher) PublishBatch(ctx context.Context, ms []system.Message) error {
	var all errgroup.Group
	for part := range slices.Chunk(ms, most) {
		all.Go(func() error {
			q := sending{Queue: p.s.queue, Entries: make([]entry, len(part))}
			for i, m := range part {
				q.Entries[i] = entry{strconv.Itoa(i), base64.StdEncoding.EncodeToString(m.Body)}
			}
			return p.s.call(ctx, "SendMessageBatch", q, nil)
		})
	}
	return all.Wait()
}

func (publisher) PublishAsync(context.Context, system.Message) error { return errNoAsync }
func (publisher) Flush(context.Context) error                        { return nil }

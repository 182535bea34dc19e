package elasticmq

import (
	"context"
	"encoding/base64"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/ferrymq/ferry/bench/system"
)

// consumers receive at once.
const consumers = 16

// receiving is a request for messages.
type receiving struct {
	Queue string `json:"QueueUrl"`
	Most  int    `json:"MaxNumberOfMessages"`
	Wait  int    `json:"WaitTimeSeconds"`
}

// received is its answer.
type received struct {
	Messages []struct {
		Body   string
		Handle string `json:"ReceiptHandle"`
	}
}

// deleting is a request that deletes what was handled: the acknowledgement of SQS.
type deleting struct {
	Queue   string    `json:"QueueUrl"`
	Entries []handled `json:"Entries"`
}

type handled struct {
	ID     string `json:"Id"`
	Handle string `json:"ReceiptHandle"`
}

// Consume receives, handles and deletes.
func (s *session) Consume(ctx context.Context, _ system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &consumer{cancel: cancel}
	for range consumers {
		c.running.Go(func() error {
			for ctx.Err() == nil {
				if err := s.turn(ctx, h); err != nil && ctx.Err() == nil {
					return err
				}
			}
			return nil
		})
	}
	return c, nil
}

// turn receives once. What was handled is deleted even if the consumer stops meanwhile.
func (s *session) turn(ctx context.Context, h system.Handler) error {
	var got received
	if err := s.call(ctx, "ReceiveMessage", receiving{s.queue, most, 1}, &got); err != nil || len(got.Messages) == 0 {
		return err
	}
	q := deleting{Queue: s.queue, Entries: make([]handled, len(got.Messages))}
	for i, m := range got.Messages {
		body, err := base64.StdEncoding.DecodeString(m.Body)
		if err == nil {
			err = h(body)
		}
		if err != nil {
			return err
		}
		q.Entries[i] = handled{strconv.Itoa(i), m.Handle}
	}
	return s.call(context.WithoutCancel(ctx), "DeleteMessageBatch", q, nil)
}

type consumer struct {
	cancel  context.CancelFunc
	running errgroup.Group
}

func (c *consumer) Stop(context.Context) error {
	c.cancel()
	return c.running.Wait()
}

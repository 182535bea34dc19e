package ferry

import (
	"context"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver"
)

// PublishOption changes one publish: its message, or how it is sent.
type PublishOption func(*publication)

// publication is one message on its way, with what its options asked for.
type publication struct {
	msg    Message
	send   driver.PublishOptions
	codec  codec.Codec
	err    error           // of an option itself
	alone  [1]*Message     // msg as a batch of one
	hooked context.Context // that the Publishing hook returned; nil without one
}

// Key orders messages: those of one key are handled one at a time, in publish order.
func Key(key string) PublishOption { return func(p *publication) { p.msg.Key = key } }

// Delay makes the message due this long after the broker stored it. Zero and less mean now.
func Delay(d time.Duration) PublishOption {
	return func(p *publication) { p.msg.Delay = min(d, driver.Hold-1) } // the longest of all has a meaning of its own
}

// At makes the message due when the broker's clock reaches t. A time in the past means now, and one after
// 2262-04-11, which not every broker can say, is refused.
func At(t time.Time) PublishOption { return func(p *publication) { p.msg.At = t } }

// Priority puts the message into a lane: Low, Normal, High or Urgent. The default is Normal.
func Priority(l Lane) PublishOption { return func(p *publication) { p.msg.Priority = l } }

// TTL removes the message this long after it was published, unless it is settled or running by then.
func TTL(d time.Duration) PublishOption {
	return func(p *publication) {
		p.msg.TTL = d
		if d <= 0 {
			p.err = driver.NewError(ErrInvalid, fmt.Sprintf("TTL %v is not positive", d),
				"leave it out for a message that never expires", nil)
		}
	}
}

// Dedup makes publishes with the same id in the same topic, within window of the first, one message.
func Dedup(id string, window time.Duration) PublishOption {
	return func(p *publication) { p.msg.DedupID, p.msg.DedupWindow = id, window }
}

// Unique makes the message the only one of its topic with this id that is not settled: until every group has
// acknowledged, dropped or buried it, or it has expired or been removed, another publish with the id fails with a
// UniqueError, which is an ErrConflict and tells the first one's message id. After a crash in the wrong moment the id
// is free when ttl is over: choose it longer than a message may take, retries included, because after it another is
// accepted in any case.
func Unique(id string, ttl time.Duration) PublishOption {
	return func(p *publication) { p.msg.Unique = &driver.Unique{ID: id, TTL: ttl} }
}

// Header adds a header.
func Header(name, value string) PublishOption {
	return func(p *publication) {
		headers := make(map[string]string, len(p.msg.Headers)+1)
		for k, v := range p.msg.Headers { // the caller's map is not ours to change
			headers[k] = v
		}
		headers[name] = value
		p.msg.Headers = headers
	}
}

// ID sets the message's id. Publishing it again within the broker's window is acknowledged and stored once.
func ID(id string) PublishOption { return func(p *publication) { p.msg.ID, p.msg.OwnID = id, true } }

// MaxAttempts overrides how often handlers try this message. 1 means no retry, Unlimited no end.
func MaxAttempts(n int) PublishOption {
	return func(p *publication) {
		p.msg.MaxAttempts = n
		if n < 1 {
			p.err = driver.NewError(ErrInvalid, fmt.Sprintf("max attempts %d is less than 1", n),
				"use 1 for no retry, or leave it out", nil)
		}
	}
}

// Retry overrides the retry policy for this message.
func Retry(policy RetryPolicy) PublishOption {
	return func(p *publication) {
		p.msg.Retry = &policy
		if err := policy.Check(); err != nil {
			p.err = err
		}
	}
}

// Level is what the acknowledged publish must survive. A level the broker cannot give is refused, never lowered.
func Level(level Durability) PublishOption { return func(p *publication) { p.send.Level = level } }

// Atomic asks that a batch is stored whole or not at all.
func Atomic() PublishOption { return func(p *publication) { p.send.Atomic = true } }

// Codec encodes the value with c instead of the broker's first codec.
func Codec(c codec.Codec) PublishOption { return func(p *publication) { p.codec = c } }

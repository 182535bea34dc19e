package kafkakv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kv"
)

// partition is a partition of the topic. It is followed while somebody uses it, and for a while after that.
type partition struct {
	k  *KV
	id int32

	mu        sync.Mutex
	followed  bool
	users     int
	used      time.Time // when the last one left
	state     *replica  // nil until reading has begun
	clock     estimate
	set       bool  // the clock is: a record was stored and read since reading began
	failed    error // why it cannot be read
	pending   map[string]*pending
	moved     chan struct{} // closed when something of this has changed
	snapshots bool          // one is being written
	limit     int           // of the log's weight: then another is
}

// join begins to use a partition. Not ok: the KV is closed.
func (p *partition) join() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.followed && !p.k.spawn(p.follow) {
		return false
	}
	p.followed = true
	p.users++
	return true
}

func (p *partition) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users--
	p.used = time.Now()
}

// change tells those who wait in reach that something has changed. The caller holds mu.
func (p *partition) change() {
	close(p.moved)
	p.moved = make(chan struct{})
}

// read shows a bucket as far as it is known. Not ok: it is not known.
func (p *partition) read(bucket string, read func(b *kv.Bucket, now time.Time)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == nil || !p.state.known {
		return false
	}
	now := p.clock.now(time.Now())
	if now.Before(p.state.now) {
		now = p.state.now
	}
	read(p.state.bucket(bucket), now)
	return true
}

// broken says why it cannot be read, or nil.
func (p *partition) broken() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// sync waits until everything is known that was stored before the call, and about what time it is.
func (p *partition) sync(ctx context.Context) error {
	if err := p.catchUp(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	blind := !p.set && p.state != nil && p.state.ages()
	p.mu.Unlock()
	if blind { // what has expired long ago looks as if it lived: nothing was stored since
		_ = p.sendTick(ctx) // who may only read goes by the newest record
	}
	return ctx.Err()
}

// known reports whether there is a state, not how old it is.
func (p *partition) known() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state != nil && p.state.known
}

// catchUp waits until everything is known that was stored before the call.
func (p *partition) catchUp(ctx context.Context) error {
	end, err := p.offset(ctx, latest)
	if err != nil {
		return err
	}
	return p.reach(ctx, end)
}

// reach waits until the log is known up to an offset before which it does not end.
func (p *partition) reach(ctx context.Context, end int64) error {
	for {
		p.mu.Lock()
		there := p.state != nil && p.state.next >= end
		known := there && p.state.known
		moved, failed := p.moved, p.failed
		p.mu.Unlock()
		switch {
		case known:
			return nil
		case failed != nil:
			return failed
		case there:
			return driver.NewError(driver.ErrNotApplied,
				fmt.Sprintf("the begin of partition %d of %s is gone, and there is no snapshot of it", p.id, p.k.o.Topic),
				"restore the topic; if its values are not needed, stop all programs and delete it", nil)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.k.done:
			return kv.ErrClosed()
		}
	}
}

// Places in a log.
const (
	latest   = -1
	earliest = -2
)

// askAgain is how long whoever asks a leader that is not one yet waits.
const askAgain = 50 * time.Millisecond

// offset asks the leader where the log begins or ends.
func (p *partition) offset(ctx context.Context, place int64) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	topic, part := kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
	topic.Topic, part.Partition, part.Timestamp = p.k.o.Topic, p.id, place
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	for {
		at, err := offsetOf(req.RequestWith(ctx, p.k.o.Client))
		if err == nil {
			return at, nil
		}
		if p.k.waiters.Ended() {
			return 0, kv.ErrClosed()
		}
		if !kerr.IsRetriable(err) {
			return 0, p.k.o.Unreached("reading "+p.k.o.Topic, err)
		}
		if err := pause(ctx, askAgain); err != nil {
			return 0, err
		}
	}
}

func offsetOf(resp *kmsg.ListOffsetsResponse, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			return p.Offset, kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return 0, errors.New("the answer says nothing of the partition")
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

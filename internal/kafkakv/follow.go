package kafkakv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// Times of following.
const (
	fetchWait  = 5 * time.Second // of a fetch that finds nothing
	againAfter = 100 * time.Millisecond
)

// follow reads a partition until nobody uses it any more.
func (p *partition) follow(ctx context.Context) {
	for wait := againAfter; ctx.Err() == nil && !p.abandoned(); {
		if err := p.followOnce(ctx); err == nil {
			wait = againAfter
		} else if ctx.Err() == nil {
			p.fail(err)
			wait = min(2*wait, fetchWait)
		}
		if pause(ctx, wait) != nil {
			return
		}
	}
}

// abandoned stops the following if nobody has used the partition for a while.
func (p *partition) abandoned() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users > 0 || len(p.pending) > 0 || time.Since(p.used) < p.k.o.Idle {
		return false
	}
	p.followed, p.state, p.failed = false, nil, nil
	return true
}

// fail notes that it cannot be read. Who waits for a verdict waits in vain.
func (p *partition) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = err
	for _, w := range p.pending {
		p.settle(w, driver.WriteResult{Err: unknown(err)})
	}
	p.change()
}

// followOnce reads from the begin of the log. It returns when the partition is abandoned, when reading must begin anew,
// and with an error that does not go away by itself.
func (p *partition) followOnce(ctx context.Context) error {
	start, err := p.offset(ctx, earliest)
	if err != nil {
		return err
	}
	cl, err := p.k.o.Reader(kgo.ConsumePartitions(
		map[string]map[int32]kgo.Offset{p.k.o.Topic: {p.id: kgo.NewOffset().At(start)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxWait(fetchWait))
	if err != nil {
		return p.k.o.Unreached("reading "+p.k.o.Topic, err)
	}
	defer cl.Close()
	p.begin(start)
	for !p.idle() {
		some, cancel := context.WithTimeout(ctx, p.k.o.Idle/2)
		fetches := cl.PollFetches(some)
		cancel()
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return nil
		}
		if again, err := p.takeAll(fetches); again || err != nil {
			return err
		}
	}
	return nil
}

// idle reports whether the partition may be abandoned.
func (p *partition) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.users == 0 && len(p.pending) == 0 && time.Since(p.used) >= p.k.o.Idle
}

// begin forgets what is known.
func (p *partition) begin(start int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.clock, p.set, p.failed = newReplica(start, p.observe), estimate{}, false, nil
	p.limit = p.nextLimit(0)
	p.change()
}

// takeAll takes what was fetched. Again: the log is not what was read any more, so that reading begins anew.
func (p *partition) takeAll(fetches kgo.Fetches) (again bool, err error) {
	fetches.EachPartition(func(f kgo.FetchTopicPartition) {
		if len(f.Records) > 0 && !again && err == nil {
			again, err = p.take(f.Records, f.HighWatermark)
		}
		var lost *kgo.ErrDataLoss
		switch {
		case f.Err == nil, errors.Is(f.Err, context.DeadlineExceeded), errors.Is(f.Err, context.Canceled):
		case errors.Is(f.Err, kerr.OffsetOutOfRange), errors.As(f.Err, &lost):
			// trimmed before we came there, or cut at its end
			again = true
		case !kerr.IsRetriable(f.Err):
			err = p.k.o.Unreached("reading "+p.k.o.Topic, f.Err)
		}
	})
	return again, err
}

// take judges records in their order.
func (p *partition) take(rs []*kgo.Record, end int64) (again bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.change()
	known, now := p.state.known, time.Now()
	for _, r := range rs {
		if r.Offset < p.state.next {
			return true, nil // the log was cut, and went on otherwise
		}
		p.clock.see(r, now)
		if err := p.state.take(r); err != nil {
			return false, driver.NewError(driver.ErrUnsupported,
				fmt.Sprintf("the record of named values at offset %d of partition %d cannot be read by this version",
					r.Offset, p.id),
				"upgrade this program: another one that uses the brokers is newer", err)
		}
	}
	if !known && p.state.known {
		p.giveUpPassed()
	}
	if p.state.known && p.state.next >= end && p.state.weight > p.limit && !p.snapshots {
		p.snapshots = p.k.spawn(p.snapshot)
	}
	return false, nil
}

// observe is told what became of each record. The partition is locked.
func (p *partition) observe(o outcome) {
	if w := p.pending[o.id]; w != nil {
		p.set = true
		p.settle(w, o.result)
	}
	if o.snapshot {
		p.limit = p.nextLimit(o.size)
	}
	if o.wakes {
		p.k.waiters.Wake(o.bucket, o.name)
	}
}

package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// benchHeader is the start of each body: the number of the message, and when it was published.
const benchHeader = 16

// benchRun is one measurement.
type benchRun struct {
	benchOptions
	broker *ferry.Broker
	topic  string
	begin  time.Time

	next    atomic.Int64 // number of the next message to publish
	handled atomic.Int64
	repeats atomic.Int64
	waits   []atomic.Int64 // nanoseconds from publish to handler, by number; 0: not handled
	done    context.CancelFunc
}

// benchCaller is one of the publishers.
type benchCaller struct {
	calls *hdrhistogram.Histogram // duration of each publish call
	ended time.Duration           // since the beginning
	err   error
}

func newBenchRun(o benchOptions, b *ferry.Broker) *benchRun {
	topic := fmt.Sprintf("ferry-bench-%d-%d", os.Getpid(), time.Now().UnixNano())
	return &benchRun{benchOptions: o, broker: b, topic: topic, waits: make([]atomic.Int64, o.messages)}
}

// measure publishes from all callers while a worker handles, and ends when everything is acknowledged.
func (r *benchRun) measure(ctx context.Context) (*benchResult, error) {
	w := worker.New(r.broker, worker.Options{Concurrency: r.concurrency})
	worker.HandleRaw(w, r.topic, r.handle)
	publishing, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	working, done := context.WithCancel(ctx) // apart: the last handler may end it before the last publish has returned
	defer done()
	r.done = done

	var group sync.WaitGroup
	callers := make([]benchCaller, r.callers)
	r.begin = time.Now()
	for i := range callers {
		callers[i].calls = newLatencies()
		group.Go(func() {
			callers[i].err = r.publish(publishing, &callers[i])
			callers[i].ended = time.Since(r.begin)
			if callers[i].err != nil {
				abort(callers[i].err) // the others fail because of it
				done()
			}
		})
	}
	err := w.Run(working) // returns when the last message is acknowledged
	total := time.Since(r.begin)
	if r.handled.Load() < int64(r.messages) {
		abort(err)
	}
	group.Wait()
	for i := range callers {
		if callers[i].err != nil {
			err = cmp.Or(err, context.Cause(publishing))
		}
	}
	if err := r.finish(ctx, err); err != nil {
		return nil, err
	}
	return r.result(callers, total), nil
}

// finish checks that the run is complete, unless err says that it is not, and removes its topic.
func (r *benchRun) finish(ctx context.Context, err error) error {
	clean := context.WithoutCancel(ctx)
	if err == nil {
		err = r.complete(clean)
	}
	if cleanErr := r.broker.Driver().DeleteTopic(clean, r.topic); !errors.Is(cleanErr, ferry.ErrNotFound) {
		err = errors.Join(err, cleanErr)
	}
	if ctx.Err() != nil {
		return driver.NewError(context.Canceled, "interrupted before the last message was handled",
			"let it finish, or lower --messages", nil)
	}
	return err
}

// publish takes numbers and publishes their messages until there are no more.
func (r *benchRun) publish(ctx context.Context, c *benchCaller) error {
	batch := make([]*ferry.Message, 0, r.batch)
	for {
		last := r.next.Add(int64(r.batch))
		first, end := last-int64(r.batch), min(last, int64(r.messages))
		if first >= end {
			return nil
		}
		batch = batch[:0]
		now := time.Since(r.begin)
		for n := first; n < end; n++ {
			batch = append(batch, r.message(n, now))
		}
		var err error
		if len(batch) == 1 {
			_, err = r.broker.Publish(ctx, batch[0])
		} else {
			_, err = r.broker.PublishBatch(ctx, batch)
		}
		if err != nil {
			return err
		}
		record(c.calls, time.Since(r.begin)-now)
	}
}

func (r *benchRun) message(n int64, now time.Duration) *ferry.Message {
	body := make([]byte, r.size)
	binary.BigEndian.PutUint64(body, uint64(n))
	binary.BigEndian.PutUint64(body[8:], uint64(now))
	m := &ferry.Message{Topic: r.topic, Body: body}
	if r.keys > 0 {
		m.Key = strconv.FormatInt(n%int64(r.keys), 10)
	}
	return m
}

// handle notes when a message came. The worker stops after the last one, and acknowledges what it has before that.
func (r *benchRun) handle(_ context.Context, d *ferry.Delivery) error {
	n := binary.BigEndian.Uint64(d.Body)
	wait := time.Since(r.begin) - time.Duration(binary.BigEndian.Uint64(d.Body[8:]))
	if !r.waits[n].CompareAndSwap(0, max(1, int64(wait))) {
		r.repeats.Add(1)
		return nil
	}
	if r.handled.Add(1) == int64(r.messages) {
		r.done()
	}
	return nil
}

// complete checks that the broker agrees that everything was handled.
func (r *benchRun) complete(ctx context.Context) error {
	st, err := r.broker.Driver().Stats(ctx, r.topic)
	if err != nil {
		return err
	}
	var acked uint64
	for _, g := range st.Groups {
		acked += g.Acked
	}
	if acked != uint64(r.messages) {
		return fmt.Errorf("%d of %d messages were acknowledged", acked, r.messages)
	}
	return nil
}

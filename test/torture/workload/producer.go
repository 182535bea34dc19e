// Package workload is what the processes of a torture run do: publish and handle messages through the public API, and
// write down what they see.
package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/payload"
)

// Producer publishes at a steady rate. Each of its lanes owns some keys, so that the messages of one key are published
// one after the other.
type Producer struct {
	Settings
	Host
	// Lanes publish at once. Defaults to 4, or to more for a high rate, with 4 keys each.
	Lanes, Keys int
}

// Run publishes until ctx ends, and then finishes what it has begun.
func (p *Producer) Run(ctx context.Context) error {
	if p.Lanes == 0 {
		p.Lanes, p.Keys = max(4, p.Rate/laneRate), 4
	}
	p.Log.Record(history.Event{Kind: history.KindStart})
	var running sync.WaitGroup
	for n := range p.Lanes {
		running.Go(func() { p.lane(ctx, n) })
	}
	running.Wait()
	p.Log.Record(history.Event{Kind: history.KindStop})
	return nil
}

// laneRate is what a lane can publish in a second, where an answer takes some milliseconds.
const laneRate = 100

// patience is how long a message that a broker does not take is tried again.
const patience = 10 * time.Second

func (p *Producer) lane(ctx context.Context, n int) {
	l := &lane{Producer: p, n: n, random: rand.New(rand.NewPCG(p.Seed, uint64(n))), seqs: make([]int64, p.Keys)}
	pause := time.Second * time.Duration(p.Lanes) / time.Duration(max(p.Rate, 1))
	ticker := time.NewTicker(max(pause, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		p.Pass()
		batch := []draft{l.draft()}
		if l.random.IntN(20) == 0 {
			for range 9 {
				batch = append(batch, l.draft())
			}
		}
		l.send(context.WithoutCancel(ctx), batch)
	}
}

type lane struct {
	*Producer
	n      int
	random *rand.Rand
	count  int
	seqs   []int64
}

// draft is a message with what the history says about it.
type draft struct {
	msg   *ferry.Message
	event history.Event
}

// draft makes the next message: most have a key; some of the others a delay, a schedule, or a time to live.
func (l *lane) draft() draft {
	l.count++
	e := history.Event{Kind: history.KindPublish, Topic: l.Topic, ID: fmt.Sprintf("%s.%d-%d", l.Instance, l.n, l.count)}
	m := &ferry.Message{ID: e.ID, Topic: l.Topic, Priority: ferry.Lane(l.random.IntN(4) - 1)}
	switch kind := l.random.IntN(100); {
	case kind < 60:
		k := l.random.IntN(l.Keys)
		l.seqs[k]++
		e.Key, e.Seq = fmt.Sprintf("%s.%d-k%d", l.Instance, l.n, k), l.seqs[k]
	case kind < 72:
		m.Delay = time.Duration(1+l.random.IntN(1500)) * time.Millisecond
	case kind < 76:
		m.At = time.Now().Add(time.Duration(l.random.IntN(1500)) * time.Millisecond)
		e.Due = m.At.UnixNano()
	case kind < 80:
		m.TTL = time.Duration(50+l.random.IntN(500)) * time.Millisecond
	}
	size := 16 + l.random.IntN(240)
	if l.random.IntN(200) == 0 {
		size = 32 << 10
	}
	m.Key, m.Body = e.Key, payload.Make(e.Seq, size, l.random)
	e.Hash, e.Delay, e.TTL = payload.Hash(m.Body), int64(m.Delay), int64(m.TTL)
	return draft{m, e}
}

// send publishes drafts until each has a certain answer, so that a key goes on only after its last message was taken.
func (l *lane) send(ctx context.Context, drafts []draft) {
	end := time.Now().Add(patience)
	for len(drafts) > 0 && time.Now().Before(end) {
		call := l.Log.Clock()
		for _, d := range drafts {
			d.event.Called = call
			l.Log.Record(d.event)
		}
		receipts := l.publish(ctx, drafts)
		l.Pass()
		var again []draft
		for i, d := range drafts {
			if l.note(d, receipts[i].Err) {
				again = append(again, d)
			}
		}
		if drafts = again; len(drafts) > 0 {
			pause(ctx, 20*time.Millisecond)
		}
	}
}

func (l *lane) publish(ctx context.Context, drafts []draft) []ferry.Receipt {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if len(drafts) == 1 {
		r, err := l.Broker.Publish(ctx, drafts[0].msg, ferry.Level(l.Level))
		r.Err = err
		return []ferry.Receipt{r}
	}
	msgs := make([]*ferry.Message, len(drafts))
	for i, d := range drafts {
		msgs[i] = d.msg
	}
	receipts, err := l.Broker.PublishBatch(ctx, msgs, ferry.Level(l.Level))
	if len(receipts) == len(drafts) {
		return receipts
	}
	receipts = make([]ferry.Receipt, len(drafts)) // refused as a whole: nothing was sent
	for i := range receipts {
		receipts[i].Err = err
	}
	return receipts
}

// note writes the answer down, and reports whether to try again.
func (l *lane) note(d draft, err error) bool {
	e := history.Event{Kind: history.KindPublished, ID: d.event.ID}
	switch {
	case err == nil:
	case errors.Is(err, ferry.ErrUnknown):
		e.Kind, e.Note = history.KindUnknown, err.Error()
	default:
		e.Kind, e.Note = history.KindRefused, err.Error()
	}
	l.Log.Record(e)
	return err != nil && !errors.Is(err, ferry.ErrClosed)
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

package leaders_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/open"
)

const (
	childURL  = "FERRY_LEADERS_URL"
	childTape = "FERRY_LEADERS_TAPE"

	bucket = "torture.lead"
	state  = "state" // what leaders write, under their lease: their epoch
	ttl    = time.Second
)

// child leads for a while, again and again, until it is killed. After each time it waits for its successor and then writes late.
func child() error {
	ctx := context.Background()
	b, err := open.URL(ctx, os.Getenv(childURL))
	if err != nil {
		return err
	}
	t, err := openTape(os.Getenv(childTape))
	if err != nil {
		return err
	}
	p := &candidate{kv: b.Driver().KV(), tape: t}
	for {
		l, err := cluster.Acquire(ctx, b, "lease", cluster.LockOptions{Bucket: bucket, TTL: ttl})
		if err != nil {
			return err // Acquire tries again while the server is away
		}
		p.lead(l)
		_ = l.Release(ctx)
		p.writeLate(ctx, l)
	}
}

type candidate struct {
	kv   driver.KV
	tape *tape
}

// lead writes until its time is over, or the lease is lost.
func (p *candidate) lead(l *cluster.Lock) {
	for end := time.Now().Add(time.Duration(200+rand.IntN(600)) * time.Millisecond); time.Now().Before(end) && l.Context().Err() == nil; {
		p.write(l.Context(), l, false)
	}
}

// write writes the epoch under its fence, and notes what became of that. What is not known is not noted.
func (p *candidate) write(ctx context.Context, l *cluster.Lock, late bool) {
	data := binary.BigEndian.AppendUint64(nil, l.Epoch())
	r := p.kv.Apply(ctx, bucket, driver.KVOptions{}, driver.Write{Name: state, Data: data, Fence: l.Fence()})[0]
	switch {
	case r.Err == nil:
		p.tape.write(event{Epoch: l.Epoch(), Revision: r.Revision, Late: late})
	case errors.Is(r.Err, ferry.ErrLeaseLost):
		p.tape.write(event{Epoch: l.Epoch(), Refused: true, Late: late})
	}
}

// writeLate waits until a later epoch has written, and writes as one that was paused would.
func (p *candidate) writeLate(ctx context.Context, l *cluster.Lock) {
	for end := time.Now().Add(5 * ttl); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		vs, err := p.kv.Get(ctx, bucket, state)
		if err == nil && len(vs[0].Data) == 8 && binary.BigEndian.Uint64(vs[0].Data) > l.Epoch() {
			p.write(ctx, l, true)
			return
		}
	}
}

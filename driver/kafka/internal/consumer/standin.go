package consumer

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// While a rebalance is being completed brokers accept no commit, and that may take long where they have no processor
// time. Whoever dies then must not bring back all that was acknowledged meanwhile. So an owner whose commits are
// refused for as long as lies between two of them stores in the retry log what they would have said: a stand-in, one
// record of a partition, and another when that has changed.
//
// The next owner adds it to what is committed, if that is still the commit which the stand-in was written after: any
// other, of the same owner or of a reset, makes it void. So does the announcement of a later owner, who writes again
// what it has read. One that came behind its back says that messages are in the retry log which that owner took out.

// standInKey is the whole key of a stand-in in the retry log.
const standInKey = "s"

// standInRoom is how much it may say of what is done: more than a window needs.
const standInRoom = 64 << 10

// standIn is what a refused commit would have said.
type standIn struct {
	After    uint64 // the mark of the commit that it adds to
	At       int64
	Seen     int32
	Metadata string
}

// mark tells commits of a partition apart.
func mark(at int64, metadata string) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, at, " ", metadata) // never fails
	return h.Sum64()
}

// refused is told that a commit was refused.
func (p *partition) refused(now time.Time) {
	if p.refusedSince.IsZero() {
		p.refusedSince = now
	}
	if now.Sub(p.refusedSince) < cluster.CommitEvery || p.lost || p.succeeded || p.m.Visit || !p.m.vouched(now) {
		return
	}
	if r := p.standInNow(); string(r.Value) != p.standsIn {
		p.standsIn, p.refusedSince = string(r.Value), now
		p.m.saver.endLater(r)
	}
}

// standInNow is the stand-in of a partition as it is.
func (p *partition) standInNow() *kgo.Record {
	value, _ := json.Marshal(standIn{p.last, p.done.Base, p.done.Seen,
		p.current().String() + p.done.Encode(standInRoom)}) // plain data: never fails
	return loggedAs(p.m.retryName, p.id, standInKey, value, record.State{Epoch: p.epoch, Offset: -1})
}

// accepted is told of a commit. Nothing needs to stand in for it any more.
func (p *partition) accepted(at int64, metadata string) {
	p.last, p.refusedSince = mark(at, metadata), time.Time{}
	if p.standsIn != "" && !p.lost {
		p.standsIn = ""
		p.m.saver.endLater(p.m.retryEnd(p, standInKey))
	}
	p.hasPassed(at)
}

// addStandIn adds what the last owner could not commit, as the retry log says, but for what the main topic has lost
// since.
func (p *partition) addStandIn(ctx context.Context) error {
	p.m.mu.Lock()
	r := p.found[standInKey]
	p.m.mu.Unlock()
	var x standIn
	if r == nil || json.Unmarshal(r.Value, &x) != nil || x.After != p.last {
		return nil
	}
	set := offsets.Committed(kadm.Offset{At: x.At, LeaderEpoch: x.Seen, Metadata: x.Metadata})
	if _, err := p.m.d.cluster.CheckLogs(ctx, p.m.mainName, map[int32]*offsets.Set{p.id: set}); err != nil {
		return err
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.done.Add(set)
	logged := p.tally.Logged
	p.tally = offsets.ReadTally(x.Metadata, x.At)
	p.tally.Logged, p.standsIn, p.dirty = logged, string(r.Value), true
	return nil
}

// dropStandIn makes what was found void, until a later one is.
func (p *partition) dropStandIn() {
	if p.found[standInKey] != nil {
		delete(p.found, standInKey)
		p.doubtful[standInKey] = true
	}
}

package kafkakv

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kv"
)

// replica is the state of one partition before an offset: the same records give the same replica, whoever reads them,
// from the begin of the log or from a snapshot. It knows no clock but that of the records. It is not safe for
// concurrent use.
type replica struct {
	next    int64 // the offset of the next record
	epoch   int32 // of the leader that stored the newest record
	now     time.Time
	base    uint64 // what was changed up to this revision is not known
	buckets map[string]*kv.Bucket

	known    bool          // otherwise a snapshot is awaited
	from     int64         // where reading began
	held     []*kgo.Record // since then, while it is not known
	snaps    snapshots
	asOf     int64 // of the newest complete snapshot
	before   int64 // of the one before it
	weight   int   // of the log since asOf
	damaged  int
	problem  error // of the last one that is damaged
	observed func(outcome)
}

// outcome is what became of a record.
type outcome struct {
	id       string
	offset   int64
	bucket   string
	name     string
	result   driver.WriteResult
	wakes    bool
	snapshot bool // it ended a complete snapshot
	size     int  // of that
}

// newReplica is told what became of each record. The log begins at an offset.
func newReplica(start int64, observed func(outcome)) *replica {
	return &replica{next: start, from: start, epoch: -1, known: start == 0,
		buckets: map[string]*kv.Bucket{}, observed: observed}
}

// recordWeight is what a record costs beyond its bytes.
const recordWeight = 100

// take reads the next record. After an error it is where it was: what the record means is not known to this version.
func (p *replica) take(r *kgo.Record) error {
	c, err := decode(r.Value)
	if errors.Is(err, errNewer) && !r.Attrs.IsControl() {
		return err
	}
	if err != nil && !r.Attrs.IsControl() {
		p.damaged++
		p.problem = fmt.Errorf("the record at offset %d: %w", r.Offset, err)
	}
	p.next = r.Offset + 1
	p.weight += len(r.Value) + recordWeight
	if !p.known {
		p.held = append(p.held, r)
	} else {
		p.apply(r, c)
	}
	if c != nil && c.chunk != nil {
		p.collect(c)
	}
	return nil
}

// apply judges a record, in its place of the log.
func (p *replica) apply(r *kgo.Record, c *command) {
	p.tick(r)
	if c == nil {
		return
	}
	o := outcome{id: c.id, offset: r.Offset}
	if c.write != nil {
		b, kept := p.buckets[c.bucket]
		if !kept {
			b = kv.NewBucket(c.bucket, p.base)
		}
		var effect kv.Effect
		o.result, effect = b.Apply(c.write, p.now, revision(p.epoch, r.Offset))
		o.bucket, o.name, o.wakes = c.bucket, c.write.Name, effect.Applied && !c.write.Quiet
		if effect.Remembered && !effect.Applied && c.version < versionRemembered {
			b.Unremember()
			effect.Remembered = false
		}
		if effect.Applied || effect.Remembered {
			p.buckets[c.bucket] = b
			b.Sweep(p.now, sweepMost)
		}
	}
	if c.chunk == nil {
		p.observed(o)
	}
}

// sweepMost is how many values that have expired a write takes along.
const sweepMost = 16

// tick sets the time. Within one leader it never goes back. Another leader has another clock.
func (p *replica) tick(r *kgo.Record) {
	switch {
	case r.LeaderEpoch != p.epoch:
		for _, b := range p.buckets {
			b.Renew(p.now, r.Timestamp)
		}
		p.epoch, p.now = r.LeaderEpoch, r.Timestamp
	case r.Timestamp.After(p.now):
		p.now = r.Timestamp
	}
}

// epochBits is where the leader's epoch begins in a revision: there is room for 10^12 records.
const epochBits = 40

// revision of a write. It grows along the log. One that was given and lost, because brokers lost the end of a log,
// never comes again: what is stored there then has another leader.
func revision(epoch int32, offset int64) uint64 {
	return uint64(max(epoch, 0))<<epochBits + uint64(offset) + 1
}

// bucket returns a bucket, an empty one if nothing was written in it.
func (p *replica) bucket(name string) *kv.Bucket {
	if b := p.buckets[name]; b != nil {
		return b
	}
	return kv.NewBucket(name, p.base)
}

// ages reports whether anything is there that ends by itself.
func (p *replica) ages() bool {
	for _, b := range p.buckets {
		if !b.NextEnd().IsZero() {
			return true
		}
	}
	return false
}

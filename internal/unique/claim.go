package unique

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Claim is the unique id of one message, claimed for it. Its Err says why it is not.
type Claim struct {
	Err error

	message         string // its id
	topic, id       string
	ttl             time.Duration
	later           bool // it is delayed: its Ref changes when it is due
	at              place
	revision, epoch uint64
	earlier         *record // what an earlier try of the same message had noted; nil: this is the first
}

// First reports whether this is the first claim for its message: what was stored before is not under it.
func (c *Claim) First() bool { return c.earlier == nil }

// Wanted reports whether some of the messages ask to be unique.
func Wanted(ms []*driver.Message) bool {
	for _, m := range ms {
		if m.Unique != nil {
			return true
		}
	}
	return false
}

// Claim claims the unique ids of messages, which are the caller's to change, before they are stored: one Claim each,
// nil where nothing is asked. What has got its id says so in a header. Of two with the same id the first gets it.
func (k *Keeper) Claim(ctx context.Context, ms []*driver.Message, level driver.Durability) []*Claim {
	claims := make([]*Claim, len(ms))
	parts := map[string][]*Claim{}
	for i, m := range ms {
		if m.Unique == nil {
			continue
		}
		c := &Claim{message: m.ID, topic: m.Topic, id: m.Unique.ID, ttl: m.Unique.TTL, later: m.Delay > 0 || !m.At.IsZero(),
			at: placeOf(m.Topic, m.Unique.ID)}
		m.Unique = nil // a consumer that publishes what it got does not ask again
		claims[i] = c
		parts[c.at.bucket] = append(parts[c.at.bucket], c)
	}
	eachBucket(parts, func(bucket string, cs []*Claim) { k.claim(ctx, bucket, cs, driver.KVOptions{Level: level}) })
	for i, c := range claims {
		if c != nil && c.Err == nil {
			ms[i].Headers = withHeader(ms[i].Headers, header(c.epoch, c.at.name))
		}
	}
	return claims
}

// atOnce is how many buckets are written to at the same time.
const atOnce = 16

// eachBucket calls f for every bucket: one after another costs as many round trips.
func eachBucket[T any](parts map[string][]T, f func(bucket string, ts []T)) {
	if len(parts) == 1 {
		for bucket, cs := range parts {
			f(bucket, cs)
		}
		return
	}
	var all sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for bucket, cs := range parts {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			f(bucket, cs)
		})
	}
	all.Wait()
}

// first is the write that claims an id nobody has.
func (c *Claim) first() driver.Write {
	return driver.Write{Name: c.at.name, Data: (&record{ID: c.message}).encode(), If: driver.Absent,
		TTL: c.ttl, Quiet: true}
}

func (k *Keeper) claim(ctx context.Context, bucket string, cs []*Claim, o driver.KVOptions) {
	writes := make([]driver.Write, len(cs))
	for i, c := range cs {
		writes[i] = c.first()
	}
	for i, r := range k.values.Apply(ctx, bucket, o, writes...) {
		k.take(ctx, cs[i], r, o)
	}
}

// rounds is how often a claim looks again at a value that changes meanwhile.
const rounds = 4

// take makes of an answer what becomes of a claim. It gives up only where somebody else has the value: what the last
// try wrote itself would keep the id from everybody.
func (k *Keeper) take(ctx context.Context, c *Claim, r driver.WriteResult, o driver.KVOptions) {
	for contests := 0; ; {
		switch {
		case r.Err == nil:
			c.revision, c.epoch = r.Revision, r.Epoch
			return
		case errors.Is(r.Err, driver.ErrUnknown): // written or not, the same once more tells: what it finds may be itself
			again := k.apply(ctx, c.at.bucket, o, c.first())
			if again.Err != nil && !errors.Is(again.Err, driver.ErrConflict) {
				c.Err = driver.NewError(driver.ErrUnknown,
					"nobody knows whether the unique id was claimed; the message was not sent",
					"publish it again with the same ferry.ID, which continues this claim; it ends by itself with its time", r.Err)
				return
			}
			r = again
		case !errors.Is(r.Err, driver.ErrConflict):
			c.Err = r.Err
			return
		case contests >= rounds && !c.wrote(r.Value):
			c.Err = driver.NewError(driver.ErrNotApplied, "the unique id changed hands again and again",
				"publish it once more", r.Err)
			return
		default:
			contests++
			var taken bool
			if r, taken = k.contest(ctx, c, r.Value, o); taken {
				return
			}
		}
	}
}

// wrote reports whether a value is of the claim's own message.
func (c *Claim) wrote(found driver.Value) bool {
	there, _ := decode(found.Data)
	return there.ID == c.message
}

// contest answers a claim that met a value. The id is taken, unless the value is this message's own from an earlier
// try, or its message is gone.
func (k *Keeper) contest(ctx context.Context, c *Claim, found driver.Value,
	o driver.KVOptions) (r driver.WriteResult, taken bool) {
	if found.Revision == 0 { // it was there and is not any more
		c.earlier = nil
		return k.apply(ctx, c.at.bucket, o, c.first()), false
	}
	there, _ := decode(found.Data)
	if there.Stored && k.gone(ctx, c.topic, there) {
		// Removed and written anew, for a new epoch: what still speaks of the old message cannot remove it.
		rs := k.values.Apply(ctx, c.at.bucket, o,
			driver.Write{Name: c.at.name, Delete: true, If: driver.Condition(found.Revision), Quiet: true}, c.first())
		return rs[len(rs)-1], false
	}
	if c.wrote(found) {
		there.Stored = false // it is under way again: that it is not there says nothing
		c.earlier = &there
		w := c.first()
		w.Data, w.If = there.encode(), driver.Condition(found.Revision)
		return k.apply(ctx, c.at.bucket, o, w), false
	}
	c.Err = &driver.UniqueError{Topic: c.topic, Unique: c.id, ID: there.ID}
	return r, true
}

// apply makes one write.
func (k *Keeper) apply(ctx context.Context, bucket string, o driver.KVOptions, w driver.Write) driver.WriteResult {
	return k.values.Apply(ctx, bucket, o, w)[0]
}

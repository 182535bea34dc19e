package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// buckets is over how many the hub's values are spread: each is one slot or partition of the backend.
const buckets = 64

// bucketOf is the bucket of all values of a message, or of a destination.
func bucketOf(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return fmt.Sprintf("%s.%02x", driver.NotifyBucket, h.Sum32()%buckets)
}

// prefix begins the names of the receipts of a message.
func prefix(id string) string { return "receipt/" + id + "/" }

func (r reference) value() string { return fmt.Sprintf("%s%02d", prefix(r.ID), r.Index) }

// records keep what became of targets: one value each.
type records struct {
	kv   driver.KV
	keep time.Duration
}

// kept is a record as it was read.
type kept struct {
	TargetReceipt
	index    int    // of the target
	revision uint64 // 0: there is none
	left     time.Duration
}

const (
	// waitFor is how long a receipt of a target that has not ended outlives its due time at least: a backlog, or the
	// wait that a vendor asked for.
	waitFor = 24 * time.Hour
	// cancelledFor is how long a cancellation is remembered at least: its message may lie in a queue that nobody
	// serves.
	cancelledFor = 7 * 24 * time.Hour
)

// get reads records, in the order asked.
func (s records) get(ctx context.Context, rs ...reference) ([]kept, error) {
	found := make([]kept, len(rs))
	for i, r := range rs {
		values, err := s.kv.Get(ctx, bucketOf(r.ID), r.value())
		if err != nil {
			return nil, err
		}
		if found[i], err = decodeRecord(values[0]); err != nil {
			return nil, err
		}
		found[i].index = r.Index
	}
	return found, nil
}

func decodeRecord(v driver.Value) (kept, error) {
	k := kept{revision: v.Revision, left: v.Left}
	if v.Revision == 0 {
		return k, nil
	}
	if err := json.Unmarshal(v.Data, &k.TargetReceipt); err != nil {
		return k, driver.NewError(ferry.ErrInvalid, "the receipt "+v.Name+" cannot be read", "see who else writes it",
			err)
	}
	return k, nil
}

// created is a first receipt that was written.
type created struct {
	reference
	revision uint64
}

// first is a first receipt that is to be written, of one message of a batch.
type first struct {
	reference
	message int // its place in the batch
	write   driver.Write
}

// create writes the first receipts of messages, and returns those that it wrote. Those that are there stay: a message
// is sent again under its id. Receipts of one bucket are written together.
func (s records) create(ctx context.Context, plans []*plan) (wrote []created, err error) {
	byBucket := map[string][]first{}
	for i, p := range plans {
		bucket := bucketOf(p.id)
		for j, r := range p.receipts {
			data, err := json.Marshal(r)
			if err != nil {
				return nil, of(len(plans), i, err)
			}
			ref := reference{p.id, j}
			w := driver.Write{Name: ref.value(), Data: data, If: driver.Absent,
				TTL: s.keep + waitFor + p.window + max(time.Until(p.at), 0), Quiet: true}
			byBucket[bucket] = append(byBucket[bucket], first{ref, i, w})
		}
	}
	for bucket, all := range byBucket {
		for part := range slices.Chunk(all, MaxTargets) {
			done, err := s.createPart(ctx, bucket, part, len(plans))
			wrote = append(wrote, done...)
			if err != nil {
				return wrote, err
			}
		}
	}
	return wrote, nil
}

// createPart writes first receipts of one bucket, of a batch of n messages.
func (s records) createPart(ctx context.Context, bucket string, part []first, n int) (wrote []created, err error) {
	writes := make([]driver.Write, len(part))
	for i, f := range part {
		writes[i] = f.write
	}
	var errs []error
	for i, r := range s.kv.Apply(ctx, bucket, driver.KVOptions{}, writes...) {
		switch {
		case r.Err == nil:
			wrote = append(wrote, created{part[i].reference, r.Revision})
		case !errors.Is(r.Err, ferry.ErrConflict):
			errs = append(errs, of(n, part[i].message, r.Err))
		}
	}
	return wrote, errors.Join(errs...)
}

// forget removes first receipts of targets that were certainly not queued, as far as nobody wrote over them.
func (s records) forget(ctx context.Context, cs ...created) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	for _, c := range cs {
		w := driver.Write{Name: c.value(), Delete: true, If: driver.Condition(c.revision)}
		s.kv.Apply(ctx, bucketOf(c.ID), driver.KVOptions{}, w)
	}
}

// A write that the broker did not take, or did not answer, is tried again for about a second and a half.
const (
	putTries = 6
	putPause = 50 * time.Millisecond
)

// put writes what became of a target over k. What was written meanwhile is written over, unless it is a success or, as
// long as the target was not reached, a cancellation: those are final, and then k's revision stays the old one.
func (s records) put(ctx context.Context, r reference, k kept) (revision uint64, err error) {
	data, err := json.Marshal(k.TargetReceipt)
	if err != nil {
		return 0, err
	}
	w := driver.Write{Name: r.value(), Data: data, If: condition(k.revision), TTL: s.keepFor(k)}
	pause := putPause
	for try := 1; ; try++ {
		res := s.kv.Apply(ctx, bucketOf(r.ID), driver.KVOptions{}, w)[0]
		switch {
		case res.Err == nil:
			return res.Revision, nil
		case errors.Is(res.Err, ferry.ErrConflict):
			if there, err := decodeRecord(res.Value); err == nil && there.final() && k.Status != Success {
				return k.revision, nil
			}
			w.If = condition(res.Revision)
		case !transient(res.Err), !sleep(ctx, pause):
			return 0, res.Err
		default:
			pause *= 2
		}
		if try == putTries {
			return 0, res.Err
		}
	}
}

// keepFor is how long a record is kept.
func (s records) keepFor(k kept) time.Duration {
	if k.Status.Ended() {
		return s.keep
	}
	return s.keep + waitFor
}

// final reports whether only a success may be written over the record.
func (k kept) final() bool { return k.Status == Success || k.Status == Cancelled }

// condition demands a revision, or that there is nothing.
func condition(revision uint64) driver.Condition {
	if revision == 0 {
		return driver.Absent
	}
	return driver.Condition(revision)
}

// transient reports whether a call is worth another try.
func transient(err error) bool {
	return errors.Is(err, ferry.ErrNotApplied) || errors.Is(err, ferry.ErrUnknown)
}

// sleep waits for d, and reports whether ctx lives.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// cancel writes a cancellation over the record that was read, and only that one.
func (s records) cancel(ctx context.Context, r reference, k kept) error {
	k.Status, k.At = Cancelled, time.Now()
	data, err := json.Marshal(k.TargetReceipt)
	if err != nil {
		return err
	}
	w := driver.Write{Name: r.value(), Data: data, If: condition(k.revision), TTL: max(k.left, cancelledFor)}
	return s.kv.Apply(ctx, bucketOf(r.ID), driver.KVOptions{}, w)[0].Err
}

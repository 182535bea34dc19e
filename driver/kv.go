package driver

import (
	"context"
	"fmt"
	"time"
)

// Bounds of a KV.
const (
	MaxValue     = 64 << 10         // bytes of one value
	MaxValueName = 512              // bytes of its name
	MaxValues    = 100_000          // values of one bucket; beyond it a new one is refused with ErrFull
	MaxRequests  = 100_000          // requests that one bucket remembers; beyond it another is refused with ErrFull
	MinValueTTL  = time.Second      // a shorter one cannot be told from a slow network
	RequestFor   = 60 * time.Second // how long a request is remembered
)

// KV holds small named values beside the messages: who leads, who lives, what is scheduled, how far some work is. It is
// for thousands of values, not for data. A bucket is one unit of the backend: what is promised about several values
// holds within one bucket.
type KV interface {
	// Get returns values by name, in the order asked. One that is absent or has expired has Revision 0.
	Get(ctx context.Context, bucket string, names ...string) ([]Value, error)

	// List returns a page of a bucket in order of names. A bucket in which nothing was ever written is empty.
	List(ctx context.Context, q KVQuery) (KVPage, error)

	// Apply makes each write one atomic step, in slice order, and returns one result each, in the same order. Writes may
	// succeed and fail side by side. When ctx ends before an outcome is known its result says ErrUnknown.
	Apply(ctx context.Context, bucket string, o KVOptions, ws ...Write) []WriteResult

	// Wait returns the value as soon as its revision is not after: at once if it is another already, and with Revision 0
	// if it is absent or has expired while after is not 0. A quiet write is noticed within a second.
	Wait(ctx context.Context, bucket, name string, after uint64) (Value, error)

	// Changes waits until something of the bucket was written after a revision, and returns what that was: each value once
	// as it is now, in order of revisions, deleted ones with Deleted; and the revision up to which that is all. Expiry is
	// no write. Revisions before the newest thousand or so are forgotten: ErrNotFound says that, and the caller lists the
	// bucket anew.
	Changes(ctx context.Context, bucket string, after uint64) ([]Value, uint64, error)
}

// Value is what a bucket holds under a name.
type Value struct {
	Name string
	Data []byte
	// Revision grows with every write of the bucket, over deletions and restarts. Zero: there is no such value. A backend
	// that loses acknowledged writes (a fail-over, a power loss within a sync interval) may give revisions again: who
	// needs more asks for a level.
	Revision uint64
	// Epoch is the revision of the write that made the value exist: writes that replace it keep the epoch, one after
	// absence or expiry starts a new one. It is what fences and locks compare.
	Epoch uint64
	// Written is the backend's time of the write.
	Written time.Time
	// Left is until when it expires, as the reader estimates the backend's clock; only Apply's verdict binds. Zero: never.
	Left time.Duration
	// Deleted says, in Changes alone, that the write was a deletion.
	Deleted bool
}

// Condition is what a write demands of the value that is there. The zero Condition demands nothing; a revision demands
// that one.
type Condition uint64

// Absent demands that there is no value, or that it has expired.
const Absent Condition = 1<<64 - 1

// Fence names another value of the bucket that must still have this epoch: a lease under which something is written.
type Fence struct {
	Name  string
	Epoch uint64
}

// Write is one change of a bucket.
type Write struct {
	Name string
	Data []byte
	// Delete removes the value. Removing one that is absent changes nothing and succeeds.
	Delete bool
	// If is checked inside the step; ErrConflict if it does not hold, and the result tells what is there.
	If Condition
	// TTL is from the backend's now on. Zero: never. At least MinValueTTL.
	TTL time.Duration
	// Fence is checked inside the step, before If; ErrLeaseLost if it does not hold. May be nil.
	Fence *Fence
	// Request makes a write whose outcome is not known repeatable: applied under a request, it is answered as it was the
	// first time when it comes again within RequestFor, a deletion that found nothing included. Empty: it is not
	// remembered.
	Request string
	// Quiet wakes nobody who waits: for heartbeats.
	Quiet bool
}

// WriteResult tells what became of one write.
type WriteResult struct {
	// Value is what is there after the write, without its data: with Revision 0 after a deletion. Beside ErrConflict it is
	// what was found instead, whole.
	Value
	// Err is nil once the write is applied. Otherwise it is one of ErrConflict, ErrLeaseLost, ErrInvalid, ErrFull,
	// ErrNotApplied, ErrUnknown, ErrUnsupported, ErrClosed, wrapped.
	Err error
}

// KVOptions apply to all writes of one Apply call.
type KVOptions struct {
	// Level is what an applied write must survive, as for a publish.
	Level Durability
}

// KVQuery asks for a page of a bucket.
type KVQuery struct {
	Bucket string
	Prefix string
	// After is where to go on: KVPage.Next. Empty: from the begin.
	After string
	// Limit is how many values at most. Defaults to DefaultLimit, and is at most MaxLimit.
	Limit int
}

// KVPage is a page of a bucket, in order of names.
type KVPage struct {
	Values []Value
	// Next is where the next page begins; empty at the end.
	Next string
	// Revision of the bucket before the page was read: Changes after it, of the first page, miss nothing.
	Revision uint64
}

// Check says what is wrong with a query, or nil, and fills in its defaults.
func (q *KVQuery) Check() error {
	if err := CheckName("bucket", q.Bucket); err != nil {
		return err
	}
	if err := checkText("prefix", q.Prefix, MaxValueName); err != nil {
		return err
	}
	if err := checkText("cursor", q.After, MaxValueName); err != nil {
		return err
	}
	var err error
	q.Limit, err = limited("Limit", q.Limit, DefaultLimit, MaxLimit)
	return err
}

// CheckValueNames says what is wrong with a bucket and names of values in it, or nil.
func CheckValueNames(bucket string, names ...string) error {
	if err := CheckName("bucket", bucket); err != nil {
		return err
	}
	for _, name := range names {
		if name == "" {
			return NewError(ErrInvalid, fmt.Sprintf("a value of bucket %s has no name", quote(bucket)), "name it", nil)
		}
		if err := checkText("the name of a value", name, MaxValueName); err != nil {
			return err
		}
	}
	return nil
}

// Check says what is wrong with a write, or nil. The bucket is checked by CheckValueNames.
func (w *Write) Check() error {
	switch {
	case len(w.Data) > MaxValue:
		return NewError(ErrTooLarge, fmt.Sprintf("value %s has %d bytes, more than %d", quote(w.Name), len(w.Data), MaxValue),
			"keep large data elsewhere, and its address here", nil)
	case w.Delete && (len(w.Data) > 0 || w.TTL != 0):
		return NewError(ErrInvalid, fmt.Sprintf("the deletion of value %s has data or a TTL", quote(w.Name)),
			"delete or write it", nil)
	case w.TTL != 0 && w.TTL < MinValueTTL:
		return NewError(ErrInvalid, fmt.Sprintf("a TTL of %v for value %s is too short", w.TTL, quote(w.Name)),
			fmt.Sprintf("use at least %v, or zero for ever", MinValueTTL), nil)
	}
	if w.Fence != nil {
		if w.Fence.Name == "" || w.Fence.Epoch == 0 {
			return NewError(ErrInvalid, fmt.Sprintf("the fence of value %s names no value or no epoch", quote(w.Name)),
				"use the name and the epoch of the lease", nil)
		}
		if err := checkText("the name of a fence", w.Fence.Name, MaxValueName); err != nil {
			return err
		}
	}
	return checkText("request", w.Request, MaxIDLen)
}

// Found is the error of a write whose condition does not hold: there is v instead, whose Revision is 0 if there is
// nothing.
func (w *Write) Found(v Value) error {
	if v.Revision == 0 {
		return NewError(ErrConflict, fmt.Sprintf("value %s does not exist", quote(w.Name)), "read it again", nil)
	}
	return NewError(ErrConflict, fmt.Sprintf("value %s is there with revision %d", quote(w.Name), v.Revision),
		"read it again", nil)
}

// FenceLost is the error of a write whose fence does not hold.
func (w *Write) FenceLost() error {
	return NewError(ErrLeaseLost, fmt.Sprintf("the lease %s has not epoch %d any more", quote(w.Fence.Name),
		w.Fence.Epoch), "stop what was done under it", nil)
}

// BucketFull is the error of a write for which a bucket has no room.
func BucketFull(bucket string) error {
	return NewError(ErrFull, fmt.Sprintf("bucket %s has no room", quote(bucket)),
		fmt.Sprintf("delete values, or give them a TTL: it holds %d, and %d requests of the last minute",
			MaxValues, MaxRequests), nil)
}

// ChangesForgotten is the error of Changes after a revision that is too old.
func ChangesForgotten(bucket string, after uint64) error {
	return NewError(ErrNotFound, fmt.Sprintf("the changes of bucket %s after revision %d are forgotten", quote(bucket),
		after), "list the bucket, and go on from KVPage.Revision", nil)
}

package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/instance"
	"github.com/ferrymq/ferry/internal/leasekeeper"
)

const (
	firstPause = 50 * time.Millisecond // between two tries of a write that the broker did not answer
	lastPause  = time.Second
	tries      = 3 // of TryAcquire, to learn whether it has the lock
)

var errReleased = errors.New("the lock was released")

// holder is what the data of a lock says.
type holder struct {
	Owner string `json:"owner"`
	Token string `json:"token"`
	// Since is by the backend's clock, so it is known from the first renewal on: until then the lock was written just now.
	Since time.Time `json:"since,omitzero"`
}

// Acquire takes a lock, and waits while another holds it: for LockOptions.Wait, or until ctx ends. The lock is held
// until Release, or until ctx ends. Its name is 1 to 512 bytes of printable text.
//
// ErrConflict says who holds it and since when; it wraps the error of ctx if that ended, and nothing if Wait did.
// Nobody looks at the lock meanwhile: the broker tells when it is given up or has ended.
func Acquire(ctx context.Context, b *ferry.Broker, name string, o LockOptions) (*Lock, error) {
	if err := o.checkBucket(name); err != nil {
		return nil, err
	}
	return acquire(ctx, ctx, b, name, o, true)
}

// TryAcquire takes a lock if nobody holds it. Otherwise it returns ErrConflict at once, which says who holds it and
// since when.
func TryAcquire(ctx context.Context, b *ferry.Broker, name string, o LockOptions) (*Lock, error) {
	if err := o.checkBucket(name); err != nil {
		return nil, err
	}
	return acquire(ctx, ctx, b, name, o, false)
}

// acquire takes a lock before ctx ends. It is then held until life ends.
func acquire(ctx, life context.Context, b *ferry.Broker, name string, o LockOptions, wait bool) (*Lock, error) {
	o, err := o.resolve(b, name)
	if err != nil {
		return nil, err
	}
	l := &Lock{bucket: o.Bucket, name: name, o: o, token: newToken()}
	if o.Off {
		l.ctx, l.end = context.WithCancelCause(life)
		return l, nil
	}
	l.kv = b.Driver().KV()
	err = l.take(ctx, wait)
	switch {
	case err == nil:
		o.Metrics.acquired()
		l.hold(life)
		return l, nil
	case o.Optional && away(err) && ctx.Err() == nil:
		b.Logger().WarnContext(ctx, "the work goes on without its lock", "lock", name, "error", err)
		l.ctx, l.end = context.WithCancelCause(life)
		l.lost = err
		o.Metrics.failed()
		return l, nil
	}
	o.Metrics.failed()
	return nil, err
}

// operationLock begins the name of the lock of an operation, which package operation takes.
const operationLock = "lock/"

// checkBucket refuses buckets of Ferry's own, in which a lock would stand among what is no lock.
func (o LockOptions) checkBucket(name string) error {
	if o.Bucket == "" || o.Bucket == driver.OperationsBucket && strings.HasPrefix(name, operationLock) {
		return nil
	}
	return driver.CheckBucket(o.Bucket)
}

func (o LockOptions) resolve(b *ferry.Broker, name string) (LockOptions, error) {
	if b == nil {
		return o, driver.NewError(ferry.ErrInvalid, "the broker of the lock is nil",
			"open one first, with open.URL for example", nil)
	}
	if o.Bucket == "" {
		o.Bucket = DefaultBucket
	}
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if o.Owner == "" {
		o.Owner = instance.Process()
	}
	if err := driver.CheckValueNames(o.Bucket, name); err != nil {
		return o, err
	}
	if o.Wait < 0 || o.TTL < driver.MinValueTTL {
		return o, driver.NewError(ferry.ErrInvalid,
			fmt.Sprintf("lock %q has a TTL of %v, and waits for %v", name, o.TTL, o.Wait),
			fmt.Sprintf("use a TTL of at least %v, and a wait that is not negative", driver.MinValueTTL), nil)
	}
	if len(o.Owner) > driver.MaxNameLen {
		return o, driver.NewError(ferry.ErrInvalid,
			fmt.Sprintf("the owner of lock %q has a name of %d bytes", name, len(o.Owner)),
			fmt.Sprintf("use at most %d", driver.MaxNameLen), nil)
	}
	return o, nil
}

// take gets the lock, or says who has it.
func (l *Lock) take(ctx context.Context, wait bool) error {
	within := ctx // Wait too, where that is set
	if wait && l.o.Wait > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, l.o.Wait)
		defer cancel()
	}
	for {
		found, err := l.try(within, wait)
		switch {
		case err != nil && within.Err() != nil && ctx.Err() == nil && !permanent(err):
			return l.unreached(err)
		case err != nil || found.Revision == 0:
			return err
		case !wait || !isLock(found):
			return l.heldBy(found)
		}
		if found, err = l.untilFree(within, found); err != nil {
			return err
		}
		if found.Revision != 0 {
			return l.waitedFor(found, ctx.Err())
		}
	}
}

// untilFree waits while another holds the lock. What it returns is still there when ctx ends, and nothing when the lock
// may be free.
func (l *Lock) untilFree(ctx context.Context, found driver.Value) (driver.Value, error) {
	for {
		next, err := l.kv.Wait(ctx, l.bucket, l.name, found.Revision)
		switch {
		case err == nil && next.Revision == 0:
			return next, nil
		case err == nil && !isLock(next):
			return next, l.heldBy(next)
		case err == nil:
			found = next
		case ctx.Err() != nil:
			return found, nil
		case permanent(err):
			return found, err
		case !sleep(ctx, lastPause):
			return found, nil
		}
	}
}

// try writes the lock if it is free, and otherwise returns what is there. A write that was not answered is repeated
// under its request, so that it is known whether it took the lock; what was taken long ago is renewed first.
func (l *Lock) try(ctx context.Context, patient bool) (driver.Value, error) {
	w := driver.Write{Name: l.name, Data: l.data(), If: driver.Absent, TTL: l.o.TTL, Request: newToken()}
	before, pause, mayBeOurs := time.Now(), firstPause, false
	again := func(c driver.Condition) { w.If, w.Request, before = c, newToken(), time.Now() }
	for n := 1; ; n++ {
		r := l.kv.Apply(ctx, l.bucket, driver.KVOptions{Level: l.o.Level}, w)[0]
		mayBeOurs = mayBeOurs || errors.Is(r.Err, ferry.ErrUnknown)
		switch conflict := errors.Is(r.Err, ferry.ErrConflict); {
		case r.Err == nil && time.Since(before) < leasekeeper.Usable(l.o.TTL):
			l.epoch, l.revision, l.since, l.acquired = r.Epoch, r.Revision, r.Written, before
			return driver.Value{}, nil
		case r.Err == nil, conflict && l.wrote(r.Value):
			again(driver.Condition(r.Revision))
			mayBeOurs = true
		case conflict && r.Revision == 0: // what we took has ended meanwhile
			again(driver.Absent)
			mayBeOurs = false
		case conflict:
			return r.Value, nil
		case permanent(r.Err), ctx.Err() != nil,
			!patient && (n >= tries || !errors.Is(r.Err, ferry.ErrUnknown)), !sleep(ctx, pause):
			if mayBeOurs {
				go l.abandon(context.WithoutCancel(ctx), w)
			}
			return driver.Value{}, l.undecided(r.Err)
		default:
			pause = min(2*pause, lastPause)
		}
	}
}

// abandon gives up a lock that a write may have taken after whose answer nobody asks any more, so that others need not
// wait for its TTL. Repeated under its request, the write tells. It ends with the TTL: so does the lock by then.
func (l *Lock) abandon(ctx context.Context, w driver.Write) {
	ctx, cancel := context.WithTimeout(ctx, l.o.TTL)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		r := l.kv.Apply(ctx, l.bucket, driver.KVOptions{}, w)[0]
		if r.Err == nil || errors.Is(r.Err, ferry.ErrConflict) && l.wrote(r.Value) {
			taken := &Lock{kv: l.kv, bucket: l.bucket, name: l.name, o: l.o, token: l.token,
				revision: r.Revision, epoch: r.Epoch}
			_ = taken.give(ctx) // otherwise it ends by itself
			return
		}
		if permanent(r.Err) || !sleep(ctx, pause) {
			return
		}
	}
}

func (l *Lock) undecided(err error) error {
	if permanent(err) {
		return err
	}
	return driver.NewError(kindOf(err), fmt.Sprintf("lock %q could not be acquired", l.name),
		fmt.Sprintf("see whether the broker is reachable; if it was taken after all, it is free again within %v", l.o.TTL),
		err)
}

// unreached is the error of a lock that nothing was learned of within Wait. It wraps no error of a context: that of the
// caller lives.
func (l *Lock) unreached(err error) error {
	return driver.NewError(kindOf(err), fmt.Sprintf("lock %q could not be acquired within %v: %v", l.name, l.o.Wait, err),
		fmt.Sprintf("see whether the broker is reachable; if it was taken after all, it is free again within %v", l.o.TTL),
		nil)
}

// kindOf is what a failed write says of itself.
func kindOf(err error) error {
	if errors.Is(err, ferry.ErrUnknown) {
		return ferry.ErrUnknown
	}
	return ferry.ErrNotApplied
}

func (l *Lock) data() []byte {
	data, _ := json.Marshal(holder{Owner: l.o.Owner, Token: l.token, Since: l.since}) // which cannot fail
	return data
}

// wrote reports whether v is of this holding.
func (l *Lock) wrote(v driver.Value) bool {
	var h holder
	return v.Revision != 0 && json.Unmarshal(v.Data, &h) == nil && h.Token == l.token
}

// holderOf reads who holds a lock, and reports whether v is a lock at all.
func holderOf(v driver.Value) (h holder, ok bool) {
	ok = json.Unmarshal(v.Data, &h) == nil && h.Owner != ""
	if h.Since.IsZero() {
		h.Since = v.Written
	}
	return h, ok
}

func isLock(v driver.Value) bool {
	_, ok := holderOf(v)
	return ok
}

// heldBy is the error of a lock that another holds, or of a value that is none.
func (l *Lock) heldBy(v driver.Value) error {
	h, ok := holderOf(v)
	if !ok {
		return driver.NewError(ferry.ErrConflict,
			fmt.Sprintf("there is a value %q in bucket %q that is no lock", l.name, l.bucket), "name the lock otherwise", nil)
	}
	return driver.NewError(ferry.ErrConflict, fmt.Sprintf("lock %q is held by %s", l.name, h),
		"wait for it with Acquire, or try again later", nil)
}

// waitedFor is the error of a lock that was not given up in time: by Wait, or with a cause by the caller's context.
func (l *Lock) waitedFor(v driver.Value, cause error) error {
	h, _ := holderOf(v)
	text, hint := fmt.Sprintf("lock %q is held by %s", l.name, h), "allow more time, or see what its holder does"
	if cause == nil {
		text = fmt.Sprintf("%s, and was not free within %v", text, l.o.Wait)
		hint = "wait for longer, or see what its holder does"
	}
	return driver.NewError(ferry.ErrConflict, text, hint, cause)
}

// String says who, and since when.
func (h holder) String() string {
	return fmt.Sprintf("%q since %s", h.Owner, h.Since.UTC().Format(time.RFC3339))
}

// permanent reports whether trying again cannot help.
func permanent(err error) bool {
	for _, kind := range [...]error{ferry.ErrInvalid, ferry.ErrUnsupported, ferry.ErrRefused, ferry.ErrTooLarge,
		ferry.ErrClosed, ferry.ErrLeaseLost, ferry.ErrConflict} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// away reports whether err says that the broker could not be asked.
func away(err error) bool {
	return errors.Is(err, ferry.ErrNotApplied) || errors.Is(err, ferry.ErrUnknown) ||
		errors.Is(err, ferry.ErrFull) || !permanent(err)
}

// sleep waits, and reports false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func newToken() string { return rand.Text() }

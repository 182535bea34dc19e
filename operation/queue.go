package operation

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Queue submits operations, and tells and ends them. It is safe for concurrent use.
type Queue struct {
	broker *ferry.Broker
	kv     driver.KV
	log    *slog.Logger
	kinds  map[string]Kind
}

// New returns the queue of a broker's operations. Those of other kinds are listed and can be cancelled, but neither
// submitted nor done.
func New(b *ferry.Broker, kinds ...Kind) (*Queue, error) {
	if b == nil {
		return nil, driver.NewError(ferry.ErrInvalid, "the broker is nil", "open one first, with open.URL for example", nil)
	}
	all, err := known(kinds)
	if err != nil {
		return nil, err
	}
	return &Queue{broker: b, kv: b.Driver().KV(), log: b.Logger(), kinds: all}, nil
}

// Request asks for an operation.
type Request struct {
	// Kind is the name of one that the queue knows.
	Kind string
	// Args are the arguments of its kind.
	Args any
	// DryRun only counts what would be done.
	DryRun bool
	// ID names it, 1 to 64 letters, digits, '.', '_' or '-': the same is not submitted twice within History. Empty: a new
	// one.
	ID string
	// By says who asks for it.
	By string
}

// check returns the kind and the stored form of what is asked for.
func (q *Queue) check(r Request) (Kind, record, error) {
	bad := func(text, hint string) (Kind, record, error) {
		return Kind{}, record{}, driver.NewError(ferry.ErrInvalid, text, hint, nil)
	}
	k, err := q.kind(r.Kind)
	if err != nil {
		return k, record{}, err
	}
	if r.ID != "" {
		if err := checkID(r.ID); err != nil {
			return k, record{}, err
		}
	}
	if len(r.By) > driver.MaxNameLen || strings.ContainsFunc(r.By, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return bad(fmt.Sprintf("By is %.80q, of %d bytes", r.By, len(r.By)),
			fmt.Sprintf("use at most %d bytes of printable text", driver.MaxNameLen))
	}
	args, err := json.Marshal(r.Args)
	if err != nil {
		return k, record{}, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("the arguments of kind %q are no JSON", r.Kind),
			"use plain data", err)
	}
	if len(args) > MaxArgs {
		return k, record{}, driver.NewError(ferry.ErrTooLarge,
			fmt.Sprintf("the arguments of kind %q have %d bytes", r.Kind, len(args)),
			fmt.Sprintf("use at most %d", MaxArgs), nil)
	}
	return k, record{Kind: r.Kind, Args: args, By: r.By, DryRun: r.DryRun}, k.check(args)
}

func checkID(id string) error {
	if err := driver.CheckName("operation", id); err != nil {
		return err
	}
	if len(id) > MaxID {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("the id of an operation has %d bytes", len(id)),
			fmt.Sprintf("use at most %d", MaxID), nil)
	}
	return nil
}

// Submit puts an operation into the broker, where it waits for a worker. ErrFull beyond MaxOpen, ErrConflict if
// Request.ID is known.
func (q *Queue) Submit(ctx context.Context, r Request) (Operation, error) {
	_, rec, err := q.check(r)
	if err != nil {
		return Operation{}, err
	}
	if err := q.room(ctx); err != nil {
		return Operation{}, err
	}
	data, err := rec.encode()
	if err != nil {
		return Operation{}, err
	}
	for {
		id := r.ID
		if id == "" {
			id = newID(time.Now())
		}
		res := q.write(ctx, driver.Write{Name: opPrefix + id, Data: data, If: driver.Absent})
		if errors.Is(res.Err, ferry.ErrConflict) {
			if r.ID == "" {
				continue // another has it by chance
			}
			return Operation{}, driver.NewError(ferry.ErrConflict, fmt.Sprintf("there is an operation %q already", id),
				"see how far that is, or choose another id", nil)
		}
		if res.Err != nil {
			return Operation{}, res.Err
		}
		s := stored{record: rec, id: id, revision: res.Revision}
		s.Submitted = res.Written.UTC()
		return s.operation(false), nil
	}
}

// room says whether one more may be open. Who submits at the same moment may go beyond the bound by as many.
func (q *Queue) room(ctx context.Context) error {
	all, _, err := q.open(ctx)
	if err != nil {
		return err
	}
	if len(all) >= MaxOpen {
		return driver.NewError(ferry.ErrFull, fmt.Sprintf("%d operations are open", len(all)),
			"wait until some have ended, or cancel them; does anybody work on them?", nil)
	}
	return nil
}

// idDigits are in the order of their bytes, so that ids sort by time.
const idDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// newID returns a new id, which sorts by the time it was made.
func newID(now time.Time) string {
	const timed, random = 9, 5 // digits of five bits
	id := make([]byte, timed+random)
	_, _ = rand.Read(id) // which cannot fail
	for i := timed; i < len(id); i++ {
		id[i] = idDigits[id[i]&31]
	}
	ms := now.UnixMilli()
	for i := timed - 1; i >= 0; i-- {
		id[i] = idDigits[ms&31]
		ms >>= 5
	}
	return string(id)
}

// Do does an operation here and now, without storing it, and returns how far it came. With Request.DryRun it counts.
// What is interrupted is not gone on with; to do it again is harmless.
func (q *Queue) Do(ctx context.Context, r Request) (Progress, error) {
	k, rec, err := q.check(r)
	if err != nil {
		return Progress{}, err
	}
	now := q.write(ctx, driver.Write{Name: clockName, TTL: driver.MinValueTTL, Quiet: true})
	if now.Err != nil {
		return Progress{}, now.Err
	}
	t := &Task{submitted: now.Written.UTC(), dry: r.DryRun}
	err = k.run(ctx, t, rec.Args)
	t.note(&rec)
	return rec.Progress, err
}

// Get returns an operation. ErrNotFound if there is none, or it ended longer ago than History.
func (q *Queue) Get(ctx context.Context, id string) (Operation, error) {
	s, held, err := q.read(ctx, id)
	return s.operation(held), err
}

// read returns what is stored of an operation, and whether somebody works on it.
func (q *Queue) read(ctx context.Context, id string) (stored, bool, error) {
	if err := checkID(id); err != nil {
		return stored{}, false, err
	}
	vs, err := q.kv.Get(ctx, bucket, opPrefix+id, lockPrefix+id)
	if err != nil {
		return stored{}, false, err
	}
	if vs[0].Revision == 0 {
		return stored{}, false, driver.NewError(ferry.ErrNotFound, fmt.Sprintf("there is no operation %q", id),
			"operations are forgotten a week after they end", nil)
	}
	s, err := decode(vs[0])
	return s, vs[1].Revision != 0, err
}

// Next waits until an operation is not as it was seen, and returns it. Progress is noticed within a second or two.
func (q *Queue) Next(ctx context.Context, seen Operation) (Operation, error) {
	for {
		within, cancel := context.WithTimeout(ctx, nextLook) // that a worker was killed is no write
		_, err := q.kv.Wait(within, bucket, opPrefix+seen.ID, seen.Revision)
		timeout := within.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return seen, ctx.Err()
		}
		if err != nil && !timeout {
			return seen, err
		}
		op, err := q.Get(ctx, seen.ID)
		if err != nil || op.Revision != seen.Revision || op.State != seen.State {
			return op, err
		}
	}
}

const (
	nextLook = 2 * time.Second
	tries    = 5 // of a write whose outcome is not known
	pause    = 100 * time.Millisecond
)

// write makes one write, also when the answer to it is lost.
func (q *Queue) write(ctx context.Context, w driver.Write) driver.WriteResult {
	w.Request = rand.Text()
	for try := 1; ; try++ {
		r := q.kv.Apply(ctx, bucket, driver.KVOptions{}, w)[0]
		if r.Err == nil || permanent(r.Err) || try == tries || !sleep(ctx, time.Duration(try)*pause) {
			return r
		}
	}
}

// permanent reports whether trying again cannot help.
func permanent(err error) bool {
	for _, kind := range [...]error{ferry.ErrInvalid, ferry.ErrNotFound, ferry.ErrConflict, ferry.ErrTooLarge,
		ferry.ErrUnsupported, ferry.ErrRefused, ferry.ErrLeaseLost, ferry.ErrFull, ferry.ErrClosed} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// sleep waits, and reports whether it waited to the end.
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

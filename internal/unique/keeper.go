package unique

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Bounds of what is done later.
const (
	mostTasks = 100_000                // beyond it one is left out: its value ends with its time
	notesNow  = 64                     // so many a second, that a message is stored is noted at once
	noteAfter = 2 * time.Second        // else then, if it is not settled by then, as most are
	mostTries = 5                      // of one write
	pause     = 100 * time.Millisecond // between two looks at the groups of topics
	writeTime = 10 * time.Second       // for the writes of one round
	undoTime  = 2 * time.Second        // of a publish that was not applied, beyond its context
)

// Keeper claims and frees unique ids. What its callers need not wait for is written by one goroutine that lives only
// while there is something to do.
type Keeper struct {
	driver driver.Driver
	values driver.KV
	caps   driver.Capabilities

	mu      sync.Mutex
	tasks   []task
	working bool
	closing bool
	kick    chan struct{} // there is something new
	until   time.Time     // when who works looks again by itself
	looked  time.Time     // when the groups were read last
	second  time.Time     // when noted began to count
	noted   int

	group sync.WaitGroup // of who works
	base  context.Context
	end   context.CancelFunc
}

// task is a write that nobody waits for, or a settlement to be noted.
type task struct {
	at      place
	write   driver.Write
	settled *settlement // instead of write
	look    bool        // whether the value is still there, before anything is written: reading costs a tenth
	tries   int
	due     time.Time
}

// New returns a Keeper on a driver.
func New(d driver.Driver) *Keeper {
	k := &Keeper{driver: d, values: d.KV(), caps: d.Capabilities(), kick: make(chan struct{}, 1)}
	k.base, k.end = context.WithCancel(context.Background())
	return k
}

// Stored notes that the messages of claims are stored, as their receipts say: from now on one that is not there any
// more is gone.
func (k *Keeper) Stored(c *Claim, r driver.Receipt) {
	rec := record{ID: r.ID, Stored: true}
	if r.Duplicate && c.earlier != nil { // what the earlier try stored is where it was
		rec.Ref, rec.Settled = c.earlier.Ref, c.earlier.Settled
	}
	if !c.later && !r.Ref.IsZero() {
		rec.Ref = r.Ref.String()
	}
	t := task{at: c.at, write: driver.Write{Name: c.at.name, Data: rec.encode(), If: driver.Condition(c.revision),
		TTL: c.ttl, Quiet: true}}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if now.Sub(k.second) >= time.Second {
		k.second, k.noted = now, 0
	}
	if k.noted++; k.noted > notesNow {
		t.look, t.due = true, now.Add(noteAfter)
	}
	k.push(t)
}

// Undo removes the values of messages that were certainly not stored, all of them within undoTime or later.
func (k *Keeper) Undo(ctx context.Context, cs ...*Claim) {
	if len(cs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	parts := map[string][]*Claim{}
	for _, c := range cs {
		parts[c.at.bucket] = append(parts[c.at.bucket], c)
	}
	eachBucket(parts, func(bucket string, cs []*Claim) {
		writes := make([]driver.Write, len(cs))
		for i, c := range cs {
			writes[i] = c.undo()
		}
		for i, r := range k.values.Apply(ctx, bucket, driver.KVOptions{}, writes...) {
			if again(r.Err) {
				k.add(task{at: cs[i].at, write: writes[i]})
			}
		}
	})
}

// undo removes what the claim wrote, and nothing that was written since.
func (c *Claim) undo() driver.Write {
	return driver.Write{Name: c.at.name, Delete: true, If: driver.Condition(c.revision), Quiet: true}
}

// UndoLater is Undo for who cannot wait.
func (k *Keeper) UndoLater(c *Claim) {
	k.add(task{at: c.at, write: c.undo()})
}

func (k *Keeper) add(t task) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.push(t)
}

// push is add for who holds k.mu.
func (k *Keeper) push(t task) {
	if k.closing || len(k.tasks) >= mostTasks {
		return
	}
	k.tasks = append(k.tasks, t)
	if !k.working || t.due.Before(k.until) {
		k.wake()
	}
}

// wake has somebody look at the tasks. k.mu is held.
func (k *Keeper) wake() {
	if !k.working {
		k.working = true
		k.group.Go(k.work)
		return
	}
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// Close does what is left, until ctx ends. What comes after it is left out.
func (k *Keeper) Close(ctx context.Context) {
	k.mu.Lock()
	k.closing = true
	if k.working {
		k.wake()
	}
	k.mu.Unlock()
	stop := context.AfterFunc(ctx, k.end)
	k.group.Wait()
	stop()
	k.end()
}

// work does tasks until there are none.
func (k *Keeper) work() {
	for {
		ready, wait, ok := k.next(time.Now())
		if !ok {
			return
		}
		if len(ready) > 0 {
			k.do(ready)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-k.kick:
			timer.Stop()
		}
	}
}

// next takes the tasks that are due, or tells how long to wait. It is over when there are none.
func (k *Keeper) next(now time.Time) (ready []task, wait time.Duration, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.tasks) == 0 {
		k.tasks, k.working = nil, false
		return nil, 0, false
	}
	wait = time.Hour
	var left []task
	for _, t := range k.tasks {
		due := t.due
		if t.settled != nil {
			due = later(due, k.looked.Add(pause))
		}
		if k.closing || !now.Before(due) {
			ready = append(ready, t)
			continue
		}
		left, wait = append(left, t), min(wait, due.Sub(now))
	}
	k.tasks, k.until = left, now.Add(wait)
	return ready, wait, true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// do makes the writes of tasks, many to a bucket at once.
func (k *Keeper) do(ts []task) {
	ctx, cancel := context.WithTimeout(k.base, writeTime)
	defer cancel()
	ts = k.judge(ctx, ts)
	parts := map[string][]task{}
	for _, t := range ts {
		parts[t.at.bucket] = append(parts[t.at.bucket], t)
	}
	eachBucket(parts, func(bucket string, ts []task) { k.write(ctx, bucket, k.standing(ctx, bucket, ts)) })
}

func (k *Keeper) write(ctx context.Context, bucket string, ts []task) {
	if len(ts) == 0 {
		return
	}
	writes := make([]driver.Write, len(ts))
	for i := range ts {
		writes[i] = ts[i].write
	}
	for i, r := range k.values.Apply(ctx, bucket, driver.KVOptions{}, writes...) {
		if again(r.Err) {
			k.retry(ts[i])
		}
	}
}

// standing leaves out the notes whose values are gone, or another's, by now.
func (k *Keeper) standing(ctx context.Context, bucket string, ts []task) (left []task) {
	var names []string
	for _, t := range ts {
		if t.look {
			names = append(names, t.at.name)
		}
	}
	if len(names) == 0 {
		return ts
	}
	vs, err := k.values.Get(ctx, bucket, names...)
	if err != nil {
		return ts // the condition of the write decides
	}
	for _, t := range ts {
		if t.look {
			v := vs[0]
			if vs = vs[1:]; driver.Condition(v.Revision) != t.write.If {
				continue
			}
		}
		left = append(left, t)
	}
	return left
}

// again reports whether a write is worth another try. Refused, it has been overtaken: the value is gone, or another's.
func again(err error) bool {
	return errors.Is(err, driver.ErrNotApplied) || errors.Is(err, driver.ErrUnknown)
}

// retry puts a task back for a second and more.
func (k *Keeper) retry(t task) {
	if t.tries++; t.tries >= mostTries {
		return
	}
	t.due = time.Now().Add(time.Duration(t.tries) * time.Second)
	k.add(t)
}

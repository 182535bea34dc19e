package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

const (
	writers      = 4
	valuesBucket = "torture.values"
	valueNames   = 4
	leaseNames   = 2
	answerIn     = 3 * time.Second // however others die
)

// write is one write of a value. Its identity is its data too: whoever sees the data knows which write that was. A
// repetition has the same.
type write struct {
	ID      string           `json:"id"`
	Name    string           `json:"name"`
	Delete  bool             `json:"delete,omitempty"`
	If      driver.Condition `json:"if,omitempty"`
	TTL     time.Duration    `json:"ttl,omitempty"`
	Fence   *driver.Fence    `json:"fence,omitempty"`
	Request string           `json:"request,omitempty"`
}

func (w *write) write() driver.Write {
	out := driver.Write{Name: w.Name, Delete: w.Delete, If: w.If, TTL: w.TTL, Fence: w.Fence, Request: w.Request}
	if !w.Delete {
		out.Data = []byte(w.ID)
	}
	return out
}

// found is a value that was seen.
type found struct {
	ID       string `json:"id"`
	Revision uint64 `json:"revision"`
	Epoch    uint64 `json:"epoch"`
}

// errKind is what became of a call.
type errKind string

const (
	applied    errKind = ""
	conflict   errKind = "conflict"
	leaseLost  errKind = "lease lost"
	notApplied errKind = "not applied"
	unknown    errKind = "unknown" // and everything of which it is not known whether it was applied
)

func kindOf(err error) errKind {
	switch {
	case err == nil:
		return applied
	case errors.Is(err, ferry.ErrConflict):
		return conflict
	case errors.Is(err, ferry.ErrLeaseLost):
		return leaseLost
	case errors.Is(err, ferry.ErrNotApplied):
		return notApplied
	}
	return unknown
}

// runValues harms writers until the load is over.
func runValues(ctx context.Context, r *run) error {
	restarted := make(chan error, 1)
	go func() { restarted <- r.restartServer(ctx) }()
	if err := errors.Join(r.harmWriters(ctx), <-restarted); err != nil {
		return err
	}
	r.end()
	v := judgeValues(r.tape.all())
	for _, p := range v.problems {
		r.accuse("%s", p)
	}
	// in less a busy machine may get to nothing
	if r.o.Load >= 10*time.Second && (v.applied == 0 || v.refused == 0 || v.fenced == 0) {
		r.accuse("%d writes applied, %d refused, %d fences lost: nothing is proved", v.applied, v.refused, v.fenced)
	}
	r.figure("%d writes applied, %d conflicts, %d fences lost, %d unknown, %d repeated; %d reads; %d lives of values",
		v.applied, v.refused, v.fenced, v.unknown, v.repeated, v.reads, v.lives)
	r.figure("an answer of whoever was not harmed takes %s", spread(v.took))
	return nil
}

// harmWriters kills, pauses and cuts off one after the other. A life repeats what the one before it did not learn the
// outcome of.
func (r *run) harmWriters(ctx context.Context) (err error) {
	random, lives := r.random(1), 0
	pace := 15 * time.Millisecond
	if r.o.Broker == "kafka" {
		pace = 40 * time.Millisecond
	}
	start := func(i int, repeat *write) (actor, error) {
		lives++
		return r.start(order{Name: life("writer", i, lives), Role: "writer", Seed: random.Uint64(), Members: writers,
			Repeat: repeat, Pace: pace})
	}
	processes, ways := writers, []string{killed, killed, killed, paused, cutOff, held}
	if r.o.Broker == "disk" {
		processes, ways = 1, ways[:4]
	}
	actors := make([]actor, processes)
	for i := range actors {
		if actors[i], err = start(i, nil); err != nil {
			return err
		}
	}
	for end := time.Now().Add(r.o.Load); time.Now().Before(end); {
		if !sleep(ctx, between(random, 300*time.Millisecond, 900*time.Millisecond)) {
			return nil
		}
		i, how := random.IntN(processes), ways[random.IntN(len(ways))]
		a := actors[i]
		r.harmed(a.name(), how)
		if how == killed {
			a.kill()
			if actors[i], err = start(i, r.unanswered(a.name())); err != nil {
				return err
			}
			continue
		}
		if how == paused {
			a.pause()
		} else {
			a.cut(how, 0)
		}
		sleep(ctx, between(random, 500*time.Millisecond, 2500*time.Millisecond))
		if how == paused {
			a.resume()
		} else {
			a.heal()
		}
		r.healed(a.name())
	}
	return nil
}

// unanswered is the last write of a process that has a request and no answer, if there is one.
func (r *run) unanswered(name string) (w *write) {
	for _, e := range r.tape.all() {
		switch {
		case e.Process != name:
		case e.Kind == kindCall:
			w = e.Write
		case e.Kind == kindAnswer:
			w = nil
		}
	}
	if w != nil && w.Request == "" {
		return nil
	}
	return w
}

// writer writes values at random.
type writer struct {
	*member
	kv    driver.KV
	known map[string]found // what was seen of each name last
	older map[string]found // and before that
	asked []*write         // with requests, applied a moment ago
}

// writeValues writes: several at once where one process owns the broker.
func (m *member) writeValues(ctx context.Context) error {
	if m.Broker != "disk" {
		return m.oneWriter(ctx)
	}
	errs := make([]error, m.Members)
	for i := range errs {
		o := m.order
		o.Name, o.Seed = fmt.Sprintf("%s/%d", o.Name, i+1), o.Seed+uint64(i)
		if i > 0 {
			o.Repeat = nil
		}
		inner := newMember(o, m.b, m.record)
		m.tasks.Go(func() {
			defer inner.tasks.Wait()
			errs[i] = inner.oneWriter(ctx)
		})
	}
	m.tasks.Wait()
	return errors.Join(errs...)
}

func (m *member) oneWriter(ctx context.Context) error {
	w := &writer{member: m, kv: m.b.Driver().KV(), known: map[string]found{}, older: map[string]found{}}
	if m.Repeat != nil {
		w.apply(ctx, m.Repeat)
	}
	for sleep(ctx, between(m.random, 0, m.Pace)) {
		switch n := m.random.IntN(20); {
		case n < 4:
			w.read(ctx, w.anyName())
		case n < 8:
			w.apply(ctx, w.lease())
		case n < 9 && len(w.asked) > 0:
			w.apply(ctx, w.asked[m.random.IntN(len(w.asked))])
		default:
			w.apply(ctx, w.value())
		}
	}
	return nil
}

func (w *writer) anyName() string {
	if w.random.IntN(3) == 0 {
		return w.leaseName()
	}
	return w.valueName()
}

func (w *writer) leaseName() string { return fmt.Sprintf("lease-%d", w.random.IntN(leaseNames)) }
func (w *writer) valueName() string { return fmt.Sprintf("value-%d", w.random.IntN(valueNames)) }

func (w *writer) ttl() time.Duration {
	return driver.MinValueTTL + time.Duration(w.random.IntN(1000))*time.Millisecond
}

func (w *writer) draw(name string) *write {
	x := &write{ID: fmt.Sprintf("%s#%d", w.Name, w.ops+1), Name: name}
	if w.random.IntN(2) == 0 {
		x.Request = "r" + x.ID
	}
	return x
}

// lease takes, renews or gives up a lease.
func (w *writer) lease() *write {
	x := w.draw(w.leaseName())
	x.TTL, x.If = w.ttl(), driver.Absent
	if k := w.known[x.Name]; k.Revision != 0 && w.random.IntN(3) > 0 {
		x.If = driver.Condition(k.Revision)
		if x.Delete = w.random.IntN(3) == 0; x.Delete {
			x.TTL = 0
		}
	}
	return x
}

// value writes or deletes a value, perhaps under a condition, perhaps under a lease: the newest that is known, or one
// before.
func (w *writer) value() *write {
	x := w.draw(w.valueName())
	switch k := w.known[x.Name]; w.random.IntN(4) {
	case 0:
		x.If = driver.Absent
	case 1, 2:
		x.If = driver.Condition(k.Revision)
	}
	if w.random.IntN(3) == 0 {
		x.TTL = w.ttl()
	}
	if w.random.IntN(2) == 0 {
		name := w.leaseName()
		k := w.known[name]
		if w.random.IntN(4) == 0 {
			k = w.older[name]
		}
		if k.Epoch != 0 {
			x.Fence = &driver.Fence{Name: name, Epoch: k.Epoch}
		}
	}
	if x.Delete = w.random.IntN(5) == 0; x.Delete {
		x.TTL = 0
	}
	return x
}

// apply makes a write, and again under its request while its outcome is not known.
func (w *writer) apply(ctx context.Context, x *write) {
	const most = 4
	for range most {
		err := w.once(ctx, x)
		if err != unknown || x.Request == "" || ctx.Err() != nil {
			return
		}
	}
}

func (w *writer) once(ctx context.Context, x *write) errKind {
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	w.ops++
	op := w.ops
	w.record(Event{Kind: kindCall, Op: op, Name: x.Name, Write: x})
	r := w.kv.Apply(limited, valuesBucket, driver.KVOptions{}, x.write())[0]
	e := Event{Kind: kindAnswer, Op: op, Err: kindOf(r.Err)}
	switch {
	case r.Err == nil && !x.Delete:
		e.Revision, e.Epoch = r.Revision, r.Epoch
		w.learn(x.Name, &found{x.ID, r.Revision, r.Epoch})
	case r.Err == nil:
		w.learn(x.Name, nil)
	case e.Err == conflict:
		e.Found = seen(r.Value)
		w.learn(x.Name, e.Found)
	}
	w.record(e)
	if e.Err == applied && x.Request != "" && (!x.Delete || x.If != 0) { // a deletion that found nothing is not remembered
		w.asked = append(w.asked[max(0, len(w.asked)-5):], x) // a few: none is older than a request is remembered
	}
	return e.Err
}

func (w *writer) read(ctx context.Context, name string) {
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	w.ops++
	op := w.ops
	w.record(Event{Kind: kindCall, Op: op, Name: name})
	vs, err := w.kv.Get(limited, valuesBucket, name)
	e := Event{Kind: kindAnswer, Op: op, Err: kindOf(err)}
	if err == nil {
		e.Found = seen(vs[0])
		w.learn(name, e.Found)
	}
	w.record(e)
}

func seen(v driver.Value) *found {
	if v.Revision == 0 {
		return nil
	}
	return &found{string(v.Data), v.Revision, v.Epoch}
}

// learn keeps what was seen last, and the life before it.
func (w *writer) learn(name string, v *found) {
	if k := w.known[name]; v == nil || v.Epoch != k.Epoch {
		w.older[name] = k
	}
	if v == nil {
		v = &found{}
	}
	w.known[name] = *v
}

package admin

import (
	"context"
	"sync"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/driver"
)

// Bounds of the tail of a topic: whatever comes, and however many watch, the broker is asked so often and for so much.
const (
	tailEvery = 250 * time.Millisecond
	tailMost  = 200 // messages of one look
	tailAhead = 8   // looks that a viewer may be behind
)

// look is what one look at a topic found.
type look struct {
	entries []driver.Entry
	skipped api.Skipped
}

func (l look) empty() bool { return len(l.entries) == 0 && !l.skipped.Any() }

// tailer looks at what came since the last time.
type tailer interface {
	next(ctx context.Context) (look, error)
}

// tails are the topics that somebody watches. Each is looked at by one goroutine for all its viewers, which ends with
// the last.
type tails struct {
	mu sync.Mutex
	of map[string]*tail
}

// tail is one topic that is watched.
type tail struct {
	all     *tails
	topic   string
	source  tailer
	viewers map[*viewer]bool
	stop    context.CancelFunc
	ended   chan struct{} // closed when nobody looks any more
	err     error         // why, before ended is closed; nil when the last viewer has left
}

// viewer is one who watches.
type viewer struct {
	tail  *tail
	looks chan look
	lost  api.Skipped // in looks for which there was no room, since the last one
}

// tailTopic sends the messages of a topic as they come.
func (a *API) tailTopic(ctx context.Context, in *input.TopicPath, w *writer) error {
	return a.streaming(ctx, func(ctx context.Context) error {
		v, err := a.tails.watch(ctx, in.Topic, a.newTailer)
		if err != nil {
			return err
		}
		defer v.leave()
		w.begin()
		if err := w.control.Flush(); err != nil {
			return err
		}
		return a.sendLooks(ctx, v, w)
	})
}

// sendLooks writes what a viewer gets, as far as it may see it, until it leaves or nobody looks any more.
func (a *API) sendLooks(ctx context.Context, v *viewer, w *writer) error {
	quiet := time.NewTicker(streamQuiet)
	defer quiet.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-v.tail.ended:
			return v.tail.err
		case <-quiet.C:
			err = w.alive()
		case l := <-v.looks:
			quiet.Reset(streamQuiet)
			err = a.sendLook(ctx, v.tail.topic, l, w)
		}
		if err != nil {
			return err
		}
	}
}

func (a *API) sendLook(ctx context.Context, topic string, l look, w *writer) error {
	if l.skipped.Any() {
		if err := w.event("skipped", l.skipped); err != nil {
			return err
		}
	}
	for _, e := range l.entries {
		if err := w.event("message", a.viewEntry(ctx, topic, e)); err != nil {
			return err
		}
	}
	return nil
}

// watch adds a viewer of a topic. The first one begins where the topic ends now, before watch returns.
func (ts *tails) watch(ctx context.Context, topic string, begin func(context.Context, string) (tailer, error)) (*viewer,
	error) {
	if v := ts.join(topic); v != nil {
		return v, nil
	}
	source, err := begin(ctx, topic)
	if err != nil {
		return nil, err
	}
	return ts.start(ctx, topic, source), nil
}

// join adds a viewer to a tail that runs; nil if none does.
func (ts *tails) join(topic string) *viewer {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t := ts.of[topic]; t != nil {
		return t.add()
	}
	return nil
}

// start runs a tail with its first viewer, or adds one to that of somebody who was quicker.
func (ts *tails) start(ctx context.Context, topic string, source tailer) *viewer {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of[topic]
	if t == nil {
		t = &tail{all: ts, topic: topic, source: source, viewers: map[*viewer]bool{}, ended: make(chan struct{})}
		ctx, t.stop = context.WithCancel(context.WithoutCancel(ctx)) // it outlives the request that began it
		ts.of[topic] = t
		go t.run(ctx)
	}
	return t.add()
}

// add adds a viewer. The lock is held.
func (t *tail) add() *viewer {
	v := &viewer{tail: t, looks: make(chan look, tailAhead)}
	t.viewers[v] = true
	return v
}

// leave takes a viewer away. The last one ends the tail, and waits for that.
func (v *viewer) leave() {
	t := v.tail
	t.all.mu.Lock()
	delete(t.viewers, v)
	last := len(t.viewers) == 0
	if last {
		t.forget()
	}
	t.all.mu.Unlock()
	if last {
		t.stop()
		<-t.ended
	}
}

// forget makes the next viewer begin anew. The lock is held.
func (t *tail) forget() {
	if t.all.of[t.topic] == t {
		delete(t.all.of, t.topic)
	}
}

// run looks again and again, until the last viewer has left or a look fails, which ends the streams of all.
func (t *tail) run(ctx context.Context) {
	defer close(t.ended)
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l, err := t.source.next(ctx)
		if ctx.Err() != nil {
			return
		}
		if !t.tell(l, err) {
			return
		}
	}
}

// tell hands a look to all viewers, and reports whether to go on. Who has no room for it is told later how much was
// skipped.
func (t *tail) tell(l look, err error) bool {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	if err != nil {
		t.err = err
		t.forget()
		return false
	}
	if l.empty() {
		return true
	}
	for v := range t.viewers {
		v.give(l)
	}
	return true
}

// give hands a look to a viewer, if there is room for it.
func (v *viewer) give(l look) {
	seen := int64(len(l.entries))
	l.skipped.Count, l.skipped.More = l.skipped.Count+v.lost.Count, l.skipped.More || v.lost.More
	select {
	case v.looks <- l:
		v.lost = api.Skipped{}
	default:
		v.lost = api.Skipped{Count: l.skipped.Count + seen, More: l.skipped.More}
	}
}

package worker

import "time"

// lanes hold what a consumer has fetched and not started, and decide what may start: any message without a key, and the
// first of each key whose predecessor is done. They are guarded by engine.mu.
type lanes struct {
	ready  runList // may start, in order of arrival
	keys   map[string]*lane
	queued int     // messages behind the first of their key
	spare  *lane   // free lanes, to use again
	ghosts []*lane // empty, but a fetch under way may bring what is void
}

// lane is one key of which something is held. It is freed when nothing is.
type lane struct {
	key   string
	queue runList // behind the first
	busy  bool    // its first message is ready or running
	doubt doubt
	free  *lane
}

// runList is a queue linked through run.next.
type runList struct {
	head, tail *run
	n          int
}

func (l *runList) push(r *run) {
	r.next = nil
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.next = r
	}
	l.tail = r
	l.n++
}

func (l *runList) pop() *run {
	r := l.head
	if r == nil {
		return nil
	}
	l.head = r.next
	if l.head == nil {
		l.tail = nil
	}
	r.next = nil
	l.n--
	return r
}

// push takes in a delivery, in order of arrival.
func (ls *lanes) push(r *run) {
	key := r.d.Key
	if key == "" {
		ls.ready.push(r)
		return
	}
	l := ls.keys[key]
	if l == nil {
		l = ls.open(key)
		l.busy = true
		r.lane = l
		ls.ready.push(r)
		return
	}
	r.lane, r.state = l, following
	l.queue.push(r)
	ls.queued++
	l.resolve()
}

func (ls *lanes) open(key string) *lane {
	l := ls.spare
	if l == nil {
		l = new(lane)
	} else {
		ls.spare = l.free
	}
	*l = lane{key: key}
	if ls.keys == nil {
		ls.keys = make(map[string]*lane)
	}
	ls.keys[key] = l
	return l
}

func (ls *lanes) close(l *lane) {
	delete(ls.keys, l.key)
	l.free, l.key = ls.spare, ""
	ls.spare = l
}

// shift takes the next message out of the queue of l.
func (ls *lanes) shift(l *lane) *run {
	r := l.queue.pop()
	if r != nil {
		ls.queued--
	}
	return r
}

// forget drops the queue of l: the broker has taken it back.
func (ls *lanes) forget(l *lane) {
	for r := ls.shift(l); r != nil; r = ls.shift(l) {
		r.leave()
	}
}

// advance lets the next message of l start if it may, and frees l if nothing of it is held.
func (c *consumer) advance(l *lane, now time.Duration) {
	ls := &c.lanes
	switch {
	case l.busy || l.doubt.returning > 0:
	case l.queue.n == 0 && l.doubt.is && c.intake.receiving:
		c.haunt(l)
	case l.queue.n == 0:
		ls.close(l)
	case l.doubt.is:
		c.returnDoubtful(l)
	default:
		r := ls.shift(l)
		l.busy = true
		r.arrived, r.state = now, waiting
		ls.ready.push(r)
	}
}

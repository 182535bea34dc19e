package worker

import "time"

// lanes hold what a consumer has fetched and not started, and decide what may start: any message without a key, and the
// first of each key whose predecessor is done. They are guarded by engine.mu.
type lanes struct {
	ready  runList // may start, in order of arrival
	keys   map[string]*lane
	queued int   // messages behind the first of their key
	spare  *lane // free lanes, to use again
}

// lane is one key of which something is held. It is freed when nothing is.
type lane struct {
	key   string
	queue runList // behind the first
	first *run    // ready or running; nil while none is
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

// push takes in a delivery, in order of arrival. A key comes in runs: what one fetch brings of it. The broker hands out
// nothing more of a key while it takes anything of a run for held, so what an earlier fetch brought is void by now.
func (ls *lanes) push(r *run) {
	key := r.d.Key
	if key == "" {
		ls.ready.push(r)
		return
	}
	l := ls.keys[key]
	if l == nil {
		l = ls.open(key)
	} else {
		ls.outdate(l, r.fetch)
	}
	r.lane = l
	if l.first == nil {
		ls.lead(l, r)
		return
	}
	r.state = following
	l.queue.push(r)
	ls.queued++
}

// lead makes r the first of its key.
func (ls *lanes) lead(l *lane, r *run) {
	l.first, r.state = r, waiting
	ls.ready.push(r)
}

// outdate drops what is held of a key from before this fetch, unless it runs.
func (ls *lanes) outdate(l *lane, fetch uint64) {
	if l.queue.head != nil && l.queue.head.fetch != fetch {
		ls.forget(l, l.queue.head.fetch)
	}
	if l.first != nil && l.first.fetch != fetch && (l.first.state == waiting || l.first.state == starting) {
		l.first.lost = true // and is skipped when its turn comes
	}
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

// forget drops what the queue of l has of one fetch: the broker has taken it back, or is about to.
func (ls *lanes) forget(l *lane, fetch uint64) {
	for l.queue.head != nil && l.queue.head.fetch == fetch {
		ls.shift(l).leave()
	}
}

// advance lets the next message of l start, and frees l if there is none.
func (ls *lanes) advance(l *lane, now time.Duration) {
	l.first = nil
	if r := ls.shift(l); r != nil {
		r.arrived = now
		ls.lead(l, r)
		return
	}
	ls.close(l)
}

package engine

import "maps"

// index is a map that gives its memory back after a peak, which a Go map does not: TestIndexAndQueueGiveMemoryBack.
type index[K comparable, V any] struct {
	m    map[K]V
	peak int
}

func (x *index[K, V]) get(k K) (V, bool) {
	v, ok := x.m[k]
	return v, ok
}

func (x *index[K, V]) put(k K, v V) {
	if x.m == nil {
		x.m = make(map[K]V)
	}
	x.m[k] = v
	x.peak = max(x.peak, len(x.m))
}

func (x *index[K, V]) remove(k K) {
	delete(x.m, k)
	if x.peak > 4096 && len(x.m) < x.peak/8 {
		m := make(map[K]V, len(x.m))
		maps.Copy(m, x.m)
		x.m, x.peak = m, len(m)
	}
}

func (x *index[K, V]) len() int { return len(x.m) }

// queue is a FIFO that gives its memory back.
type queue[T any] struct{ vs []T }

func (q *queue[T]) push(v T) { q.vs = append(q.vs, v) }

func (q *queue[T]) empty() bool { return len(q.vs) == 0 }

func (q *queue[T]) head() *T { return &q.vs[0] }

func (q *queue[T]) pop() {
	var zero T
	q.vs[0] = zero
	if q.vs = q.vs[1:]; len(q.vs) == 0 {
		q.vs = nil
	}
}

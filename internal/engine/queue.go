package engine

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

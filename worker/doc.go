// Package worker consumes messages: it fetches them from a broker, runs handlers, and settles what came of it.
//
// A program registers handlers and runs them until its context ends:
//
//	w := worker.New(broker, worker.Options{Concurrency: 16})
//	worker.Handle(w, "orders", func(ctx context.Context, m *ferry.Msg[Order]) error {
//		return bill(ctx, m.Value)
//	}, worker.MaxAttempts(5))
//	err := w.Run(ctx)
//
// What a handler returns decides what becomes of its message: nil acknowledges it, and an error has it retried by the
// policy until its attempts are used up and it becomes a dead letter. [RetryAfter], [Dead], [Drop], [Fatal] and [Park]
// say otherwise; each may be wrapped.
//
// # Order
//
// Messages of one key run one after the other, in the order of their arrival; different keys run in parallel. A
// follower starts when the outcome of its predecessor is decided and queued for settling, and outcomes are settled in
// that order. When a message of a key is retried, or given back, its followers are given back with it (unless the
// handler is [Relaxed]), and run after it.
//
// # Contexts
//
// A handler's context ends when the handler returns, or earlier; context.Cause then tells why: [ErrTimeout],
// [ErrStopping], [ErrCancelled] or ferry.ErrLeaseLost. Its values are those of the context given to Run.
//
// # Duplicates
//
// Delivery is at least once. A message runs again when its handler failed, or when its lease was lost: to a crash, or
// to a backend that was away for longer than the lease. A message whose process vanished while its handler ran may have
// killed it. From its third delivery on it does not start together with others like it, on its last it is the only one
// of them, so that they do not share its fate, and after Options.MaxDeliveries it becomes a dead letter. It costs one
// slot; all other messages go on. What no handler saw never dies so, nor does what a living worker lost.
package worker

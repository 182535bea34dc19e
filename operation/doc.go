// Package operation does long work over many messages: replay, remove, reschedule. An operation lies in the broker
// until somebody has done it.
//
//	queue, err := operation.New(broker, kinds.All(broker)...)
//	op, err := queue.Submit(ctx, operation.Request{Kind: kinds.Replay, Args: kinds.Letters{Topic: "orders"}})
//	worker, err := operation.NewWorker(queue, operation.WorkerOptions{})
//	err = worker.Run(ctx) // in any number of programs
//
// An operation is a named value of the broker, and whoever works on it holds a lock beside it, which fences what is
// noted: two never work on one at once. How far it is is noted each second. When its worker is stopped or killed
// another goes on. What can be done, and how each of it begins again without doing anything twice, is up to its [Kind];
// package operation/kinds has those of messages and dead letters.
package operation

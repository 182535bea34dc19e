// Package guard protects a worker, and what its handlers call, from a bad user, a bad message or a bad downstream, so
// that none of them hurts anybody else.
//
// Each layer is a plain worker.Middleware that may be used alone, left out or reordered. [Layers] puts them into the
// order that suits most programs:
//
//		limit → concurrency → dedup → breaker → handler
//
//	  - [Limiter] admits so many messages of a key in so much time, and blocks keys that keep asking for more.
//	  - [Concurrency] bounds how many messages of a key are handled at once, by this process or by all of them.
//	  - [Dedup] handles a message once, however often it is delivered.
//	  - [Breaker] leaves a failing downstream alone until it has recovered.
//
// A message that is refused is parked by default: it keeps its place and its attempts, its key waits for it, and it
// comes back when it can be expected to pass. [Drop] and [Dead] are the other policies.
//
// What the layers remember is in a [Store]: [NewMemory] in this process, [OpenDir] in this process with blocks, marks
// and changes kept in a directory, or package guard/redis for all processes together. While a store cannot be reached,
// messages wait (see FailOpen).
//
// Errors of handlers are sorted by [ClassOf]; [HTTP] does so for answers of net/http. [Admin] is how people look at
// keys, block them, and force breakers.
package guard

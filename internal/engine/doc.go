// Package engine is the broker inside a process: all indexes and all semantics of Ferry's seam.
//
// It is written so that a durable driver can put storage below it. Three rules keep that possible:
//
//   - Every change of state goes through few functions, and a write-ahead journal can be hooked there: store and
//     remove (a message), move (a message as one group sees it), and the methods in config.go (topics and groups).
//   - A message is read through one function, load, which can fail. What it cannot decode moves to the parse errors
//     of its topic; StoreRaw puts such bytes there.
//   - Everything else (lanes, chains, heaps, lease lists) is an index that can be rebuilt from messages and states.
//
// A topic is one shard with one mutex. Critical sections are short, and no mutex is held across a wait. There is no
// permanent goroutine: each topic has one timer, armed for the next moment at which something is due.
//
// Where things are:
//
//	topic     log (by position), ids, dedup ids, delayed and held messages, expiries
//	group     four lanes of what can be claimed, chains of messages with the same key, dead letters, waiting consumers
//	item      one message as one group sees it: state, counters, history
//	claim     one lease of one item by one subscription; also its fencing token
package engine

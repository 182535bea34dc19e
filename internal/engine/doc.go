// Package engine is the broker inside a process: all indexes and all semantics of Ferry's seam.
//
// With a Store below it is durable. Three rules make that possible:
//
//   - What changes is noted while the topic is locked (touch, for messages; alter, for topics and groups; claimed and
//     release, for leases), and stored as one batch before it is unlocked (journal.go). Callers wait for the batch
//     after that, without the lock. What is stored is where things are, not what happened to them.
//   - Content may be in the store only. It is read without the lock, and reading can fail (stored.go): what cannot be
//     decoded moves to the parse errors of its topic. StoreRaw puts such bytes there.
//   - Everything else (what the scheduler holds, heaps, tables) is an index that is rebuilt from messages and states
//     (restore.go).
//
// With a store and a window, most of a backlog is in the store only (cold.go, thaw.go, behind.go, reach.go).
//
// A topic is one shard with one mutex. Critical sections are short, and no mutex is held across a wait. There is no
// permanent goroutine: each topic has one timer, armed for the next moment at which something is due.
//
// Without a store the memory of messages that are gone is used again (spent.go). So no pointer to an entry or an item
// is kept beyond the lock of its topic, but in a claim.
//
// Where things are:
//
//	topic     log (by position), ids, dedup ids, delayed and held messages, expiries
//	group     what can be claimed (internal/scheduler: lanes, keys, holders), dead letters, waiting consumers
//	item      one message as one group sees it: state, counters, history; a node of the scheduler
//	cold      the tail of a topic: stretches of the log that are not in memory, and hashes of their ids
//	claim     one lease of one item by one subscription; also its fencing token
//	journal   what one step changes; keys.go and record_*.go say how that is stored
package engine

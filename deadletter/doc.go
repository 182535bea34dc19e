// Package deadletter works on what failed for good: the dead letters of every group, and what could not be decoded.
//
// A [Queue] browses, filters, counts, replays, moves, removes, exports and imports them, on every broker alike and in
// bounded steps, so that a million of them block nobody. A [Recoverer] brings them back by itself, by one [Strategy]
// for each reason, on one instance at a time.
//
// A replay to where a letter came from is one atomic step of the backend, dead to ready: however many run it, and
// wherever they are killed, each letter is back in its group or among the dead, once. A replay to another topic is a
// publish with an id that derives from the letter, then a delete: repeated within [ForwardWindow] it is a duplicate.
package deadletter

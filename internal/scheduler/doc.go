// Package scheduler decides which item of a group is claimed next, and by whom: lanes that share claims by weight, keys
// whose items are claimed in order and by one holder at a time, runs of a key, and what each holder has.
//
// It is a data structure: it does no I/O, knows no clock and no lock, and stores nothing. Its caller guards a Queue,
// with all that is in it, by one lock. It also keeps the ends of leases, and says what time it is: the scheduler only
// keeps things in order.
//
// An item is in one of these states, and says so by what it is given to:
//
//	out        not in the queue: new, ended, or waiting while others of its key pass
//	ready      Ready; offered in its lane, unless others of its key come first
//	blocking   Block; keeps its place in its key, and with it all behind it: a retry in strict order
//	held       Take; a holder has it, and nobody gets another one of its key
//
// What comes back to its old place needs nothing but that place: Ready puts it where it was.
package scheduler

package scheduler

import (
	"iter"
	"reflect"
	"unsafe"
)

// Node is where an item is in a Queue. Its zero value is out of it.
//
// It is embedded in the item, as its first field: so a node leads to its item without a pointer. That pointer would
// make an item of the engine larger than 112 bytes, and the next size of the allocator is 128:
// BenchmarkBacklog/3_groups counts those for each group.
type Node[T any] struct {
	links [2]links[T] // in the list of a lane or of a holder, and in its chain
	chain *chain[T]

	// Place orders items within their lane and key, the lowest first. It changes only while the item is out.
	Place uint64

	index int32 // in the heap of its lane, or of a Waiting, and 1; zero: in none
	lane  uint8
	state state
	// Tail says that the item gets a new place, behind all others, when its wait ends.
	Tail bool
	// Flags are the caller's: here they use what would be padding.
	Flags uint8
}

type state uint8

const (
	out      state = iota
	behind         // ready, and others of its key come first
	fresh          // ready, in the list of its lane
	returned       // ready, in the heap of its lane
	blocking
	held
)

func (n *Node[T]) item() *T { return (*T)(unsafe.Pointer(n)) }

// checkItem panics if an item of this type is not found by its node.
func checkItem[T any]() {
	if item := reflect.TypeFor[T](); item.NumField() == 0 || item.Field(0).Type != reflect.TypeFor[Node[T]]() {
		panic("scheduler: the first field of " + item.String() + " is not its Node")
	}
}

func (n *Node[T]) moved(at int32) { n.index = at + 1 }

func (n *Node[T]) ready() bool { return n.state == behind || n.Offered() }

// Offered reports whether the item can be claimed.
func (n *Node[T]) Offered() bool { return n.state == fresh || n.state == returned }

// Chained reports whether the item keeps a place in its key.
func (n *Node[T]) Chained() bool { return n.chain != nil }

// Waits reports whether the item is in a Waiting.
func (n *Node[T]) Waits() bool { return n.index != 0 && n.state != returned }

// Followers are the items of its key behind this one, in order. Who is given one may change its state.
func (n *Node[T]) Followers() iter.Seq[*T] { return from(n.links[inChain].next, inChain) }

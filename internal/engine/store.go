package engine

import "context"

// Store is where an Engine keeps what must survive the process: an ordered map of bytes. Without one everything ends
// with the process, and nothing here costs anything.
type Store interface {
	// Batch returns an empty batch.
	Batch() Batch
	// Append takes over a batch. Batches take effect whole and in the order of Append, which never waits: it is called
	// while topics are locked. With synced somebody will wait for it to survive a power loss. A nil batch changes
	// nothing, and its Round ends after all that was appended before.
	Append(b Batch, synced bool) Round
	// Read calls use with the value of each key, nil where there is none. Values are lent for the call only.
	Read(keys [][]byte, use func(i int, value []byte)) error
	// Scan calls use with every record from one key up to but without another, in order. Both are lent. When the store is
	// closed, which waits for both, Read and Scan return ErrClosed.
	Scan(from, to []byte, use func(key, value []byte) error) error
	// Room says why no more messages can be stored, or nil. It is cheap.
	Room() error
	// Stopped is closed when a write has failed. From then on nothing is accepted, and Failure says why.
	Stopped() <-chan struct{}
	Failure() error
}

// Batch is the changes of one step.
type Batch interface {
	// Set stores head and rest as one value. Neither is retained.
	Set(key, head, rest []byte)
	// SetLatest is Set for a key that nearly every batch changes: of batches that are written together only the last one
	// counts.
	SetLatest(key, value []byte)
	Delete(key []byte)
	DeleteRange(from, to []byte)
}

// Round is some batches that are written together.
type Round interface {
	// Wait returns when the batches survive the process and, with synced, a power loss. It returns the error of a
	// context that ends before, and why the store stopped if that happened.
	Wait(ctx context.Context, synced bool) error
	// Readable reports whether the batches have reached the store, so that Read finds what they stored.
	Readable() bool
	// Synced reports whether the batches survive a power loss.
	Synced() bool
}

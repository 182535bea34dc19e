// Package system is what the bench measures: a message system, ours or a peer, behind one small interface.
//
// A system lives in its own package beside this one, a file or two each. Scenarios know only this interface, so that a
// new system is measured by all of them, and a new scenario measures every system.
package system

import (
	"context"
	"time"
)

// Info describes a system for the report.
type Info struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Settings are what it runs with, and why they are its best documented ones.
	Settings string `json:"settings"`
	Why      string `json:"why"`
}

// Feature is something a scenario may need and a system may lack.
type Feature string

// Features.
const (
	Backlog  Feature = "backlog"  // keeps messages that are published before anybody consumes
	Batches  Feature = "batches"  // publishes many messages in one call
	Async    Feature = "async"    // publishes without waiting, and tells later
	Delays   Feature = "delays"   // delivers a message after a delay
	Keys     Feature = "keys"     // orders messages by key
	Retries  Feature = "retries"  // tries a failed message again later
	Consumes Feature = "consumes" // runs handlers that acknowledge
	Stores   Feature = "stores"   // keeps messages in servers or files, not on the heap of the process
	Restarts Feature = "restarts" // keeps its messages when the process ends
	Polls    Feature = "polls"    // has receives over HTTP that wait: see scenario.Polls
)

// System opens sessions of one message system in one configuration.
type System interface {
	Info() Info
	// Lacks says why the system cannot be measured where f is needed. Empty: it can.
	Lacks(f Feature) string
	// Open returns an empty session. A system that needs a server starts it here, and Close stops it.
	Open(ctx context.Context, o Options) (Session, error)
}

// Options say what a scenario will do with a session.
type Options struct {
	// Backlog says that messages are published before anybody consumes them.
	Backlog bool
	// Capacity is the most messages that will be held at once.
	Capacity int
	// Ordered says that messages have keys, Delayed that they have delays.
	Ordered, Delayed bool
}

// Session is one empty queue, for one measurement.
type Session interface {
	// Publisher returns a publisher for one goroutine.
	Publisher() Publisher
	// Consume starts handlers. Each message is acknowledged after its handler returned nil.
	Consume(ctx context.Context, o ConsumeOptions, h Handler) (Consumer, error)
	// Settled waits until everything that was handled is acknowledged, as the system itself sees it.
	Settled(ctx context.Context) error
	// Usage is what the servers and the files behind the session have used so far.
	Usage() (Usage, error)
	Close() error
}

// Usage is what servers outside this process, and files, have used so far. All zero: there are none.
type Usage struct {
	// CPU is the processor time of the servers, Commands what they were sent, Keys how many they hold.
	CPU            time.Duration
	Commands, Keys int64
	// Bytes is the memory of the servers, or the size of the files.
	Bytes int64
}

// Restarter is a session that can be closed and opened again with all it holds.
type Restarter interface {
	// Restart returns how long opening it again took.
	Restart(ctx context.Context) (time.Duration, error)
}

// Message is what is published.
type Message struct {
	Body  []byte
	Key   string
	Delay time.Duration
}

// Publisher publishes for one goroutine. It keeps no Message; whether it keeps the body is said by KeepsBodies.
type Publisher interface {
	// Publish returns when the system has acknowledged m.
	Publish(ctx context.Context, m Message) error
	// PublishBatch returns when the system has acknowledged all of ms.
	PublishBatch(ctx context.Context, ms []Message) error
	// PublishAsync returns before the system has acknowledged m; errors come from Flush at the latest.
	PublishAsync(ctx context.Context, m Message) error
	// Flush waits for the acknowledgements of all PublishAsync.
	Flush(ctx context.Context) error
	// KeepsBodies says that the caller must give each message a body of its own.
	KeepsBodies() bool
}

// ConsumeOptions describe the consuming side.
type ConsumeOptions struct {
	// Concurrency is how many handlers may run at once. Zero: what suits short handlers best.
	Concurrency int
	// RetryAfter is the wait before a failed message is tried again. Needed only with Retries.
	RetryAfter time.Duration
	// Batch is how many messages a handler is given in one call. Zero or one: one. Ours only.
	Batch int
	// Guarded puts guards that do not bind before the handler: a rate limit, a concurrency limit and a breaker.
	// Deduplicated adds one that refuses what was done before. Ours only.
	Guarded, Deduplicated bool
}

// Handler handles one body, which it does not keep. An error asks for another try.
type Handler func(body []byte) error

// Consumer is a running consumer.
type Consumer interface {
	// Stop waits for the running handlers and their acknowledgements.
	Stop(ctx context.Context) error
}

package guard

import (
	"context"
	"sync"
	"time"
)

// MemoryOptions of a Memory store.
type MemoryOptions struct {
	// MaxKeys bounds how many keys are remembered. Keys that are idle are forgotten by themselves; when there is no
	// room nevertheless, new keys are refused. Defaults to DefaultMaxKeys.
	MaxKeys int
}

// Memory is a store inside this process. Everything in it ends with the process.
type Memory struct {
	mu     sync.Mutex
	ledger *ledger
}

// NewMemory returns an empty store.
func NewMemory(o MemoryOptions) *Memory {
	return &Memory{ledger: newLedger(time.Now(), o.MaxKeys)}
}

var _ Store = (*Memory)(nil)

// Take implements Limits.
func (m *Memory) Take(_ context.Context, t Take) (Verdict, error) {
	now := m.ledger.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.take(now, &t)
}

// Return implements Limits.
func (m *Memory) Return(_ context.Context, t Take, ticket uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ledger.giveBack(time.Now(), &t, ticket)
	return nil
}

// Acquire implements Slots. Slots in this process are held until they are released.
func (m *Memory) Acquire(_ context.Context, r SlotRequest) (Slot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.acquire(r)
}

// Release implements Slots.
func (m *Memory) Release(_ context.Context, r SlotRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ledger.release(r)
	return nil
}

// Begin implements Marks.
func (m *Memory) Begin(_ context.Context, r MarkRequest) (Mark, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.begin(m.ledger.now(), r)
}

// Complete implements Marks.
func (m *Memory) Complete(_ context.Context, r MarkRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ledger.complete(m.ledger.now(), r)
	return nil
}

// Abort implements Marks.
func (m *Memory) Abort(_ context.Context, r MarkRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ledger.abort(r)
	return nil
}

// Change implements Desk.
func (m *Memory) Change(_ context.Context, c Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.change(time.Now(), c)
}

// Status implements Desk.
func (m *Memory) Status(_ context.Context, limit, key string) (Status, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.status(time.Now(), limit, key), nil
}

// List implements Desk.
func (m *Memory) List(_ context.Context, q Query) (Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.list(time.Now(), q.resolved()), nil
}

// Audit implements Desk.
func (m *Memory) Audit(_ context.Context, max int) ([]Change, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.newest(max), nil
}

// Report implements Desk.
func (m *Memory) Report(_ context.Context, instance string, breakers []BreakerStatus) ([]Forced, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.report(time.Now(), instance, breakers), nil
}

// Reports implements Desk.
func (m *Memory) Reports(context.Context) ([]BreakerStatus, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.allReports(time.Now()), nil
}

// Close implements Store.
func (m *Memory) Close(context.Context) error { return nil }

func (q Query) resolved() Query {
	if q.Max <= 0 {
		q.Max = 100
	}
	q.Max = min(q.Max, 1000)
	return q
}

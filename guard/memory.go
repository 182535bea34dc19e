package guard

import (
	"context"
	"sync"
	"time"

	"github.com/ferrymq/ferry/guard/store"
)

// MemoryOptions of NewMemory.
type MemoryOptions struct {
	// MaxKeys bounds how many keys are remembered. Keys that are idle are forgotten by themselves; when there is no
	// room nevertheless, new keys are refused. As many marks of a Dedup are remembered: of more, what was done first is
	// forgotten before its time. Defaults to DefaultMaxKeys.
	MaxKeys int
}

// memoryStore is a store inside this process. Everything in it ends with the process.
type memoryStore struct {
	mu     sync.Mutex // of all but the slots and the marks
	slots  sync.Mutex
	marks  sync.Mutex
	ledger *ledger
}

// NewMemory returns a store inside this process. Everything in it ends with the process.
func NewMemory(o MemoryOptions) Store {
	return &memoryStore{ledger: newLedger(time.Now(), o.MaxKeys)}
}

var _ Store = (*memoryStore)(nil)

// Take implements store.Limits.
func (m *memoryStore) Take(_ context.Context, t store.Take) (Verdict, error) {
	now := m.ledger.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.take(now, &t)
}

// Return implements store.Limits.
func (m *memoryStore) Return(_ context.Context, t store.Take, ticket uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ledger.giveBack(time.Now(), &t, ticket)
	return nil
}

// Acquire implements store.Slots. Slots in this process are held until they are released.
func (m *memoryStore) Acquire(_ context.Context, r store.SlotRequest) (store.Slot, error) {
	m.slots.Lock()
	defer m.slots.Unlock()
	return m.ledger.slots.acquire(r)
}

// Release implements store.Slots.
func (m *memoryStore) Release(_ context.Context, r store.SlotRequest) error {
	m.slots.Lock()
	defer m.slots.Unlock()
	m.ledger.slots.release(r)
	return nil
}

// Begin implements store.Marks.
func (m *memoryStore) Begin(_ context.Context, r store.MarkRequest) (store.Mark, error) {
	k := r.Digest()
	m.marks.Lock()
	defer m.marks.Unlock()
	return m.ledger.marks.begin(k, r.Token, m.ledger.at)
}

// Complete implements store.Marks.
func (m *memoryStore) Complete(_ context.Context, r store.MarkRequest) error {
	k := r.Digest()
	m.marks.Lock()
	defer m.marks.Unlock()
	at := m.ledger.at()
	m.ledger.marks.complete(k, at, at+r.Window)
	return nil
}

// Abort implements store.Marks.
func (m *memoryStore) Abort(_ context.Context, r store.MarkRequest) error {
	k := r.Digest()
	m.marks.Lock()
	defer m.marks.Unlock()
	m.ledger.marks.abort(k, r.Token)
	return nil
}

// Change implements store.Desk.
func (m *memoryStore) Change(_ context.Context, c Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.change(time.Now(), c)
}

// Status implements store.Desk.
func (m *memoryStore) Status(_ context.Context, limit, key string) (Status, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.status(time.Now(), limit, key), nil
}

// List implements store.Desk.
func (m *memoryStore) List(_ context.Context, q Query) (Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.list(time.Now(), q.Resolve()), nil
}

// Rules implements store.Desk.
func (m *memoryStore) Rules(context.Context) ([]SharedRule, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.sharedRules(), nil
}

// Audit implements store.Desk.
func (m *memoryStore) Audit(_ context.Context, max int) ([]Change, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.newest(max), nil
}

// Report implements store.Desk.
func (m *memoryStore) Report(_ context.Context, instance string, breakers []BreakerStatus) ([]store.Forced, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.report(time.Now(), instance, breakers), nil
}

// Reports implements store.Desk.
func (m *memoryStore) Reports(context.Context) ([]BreakerStatus, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.allReports(time.Now()), nil
}

// Close implements store.Store.
func (m *memoryStore) Close(context.Context) error { return nil }

package ferrytest

import (
	"context"
	"sync"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// recorder is a driver that notes what passes through it, and fails what it was asked to fail.
type recorder struct {
	driver.Driver
	publishFaults, settleFaults faults

	mu        sync.Mutex
	published map[string][]*ferry.Message
	settled   map[string][]driver.Settlement
}

func newRecorder(d driver.Driver) *recorder {
	return &recorder{Driver: d, published: map[string][]*ferry.Message{}, settled: map[string][]driver.Settlement{}}
}

// Publish stores those messages that no fault was planned for.
func (r *recorder) Publish(ctx context.Context, msgs []*driver.Message,
	o driver.PublishOptions) ([]driver.Receipt, error) {
	receipts := make([]driver.Receipt, len(msgs))
	var pass []*driver.Message
	var at []int // where the answer for each of pass belongs
	var firstErr error
	for i, m := range msgs {
		if err := r.publishFaults.next(); err != nil {
			receipts[i] = driver.Receipt{ID: m.ID, Err: err}
			firstErr = err
			continue
		}
		pass, at = append(pass, m), append(at, i)
	}
	if len(pass) == 0 {
		return receipts, firstErr
	}
	stored, err := r.Driver.Publish(ctx, pass, o)
	for j, receipt := range stored {
		receipts[at[j]] = receipt
		if receipt.Err == nil && !receipt.Duplicate {
			r.note(pass[j])
		}
	}
	if err == nil {
		err = firstErr
	}
	return receipts, err
}

func (r *recorder) note(m *driver.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.published[m.Topic] = append(r.published[m.Topic], m.Clone())
}

// Subscribe wraps the subscription, so that its settlements are noted.
func (r *recorder) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	s, err := r.Driver.Subscribe(ctx, o)
	if err != nil {
		return nil, err
	}
	return &recordedSubscription{Subscription: s, recorder: r}, nil
}

type recordedSubscription struct {
	driver.Subscription
	recorder *recorder
}

// Settle passes on those settlements that no fault was planned for, one by one to keep their order.
func (s *recordedSubscription) Settle(ctx context.Context, ss []driver.Settlement) []error {
	errs := make([]error, len(ss))
	for i := range ss {
		if errs[i] = s.recorder.settleFaults.next(); errs[i] != nil {
			continue
		}
		if errs[i] = s.Subscription.Settle(ctx, ss[i:i+1])[0]; errs[i] != nil {
			continue
		}
		for _, m := range ss[i].Emit {
			s.recorder.note(m)
		}
		s.recorder.settle(ss[i])
	}
	return errs
}

func (r *recorder) settle(s driver.Settlement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	topic := s.Delivery.Topic
	r.settled[topic] = append(r.settled[topic], s)
}

// faults counts calls and fails the planned ones.
type faults struct {
	mu      sync.Mutex
	calls   int
	planned map[int]error // by number of the call
}

func (f *faults) plan(n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.planned == nil {
		f.planned = map[int]error{}
	}
	f.planned[f.calls+n] = err
}

func (f *faults) next() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	err := f.planned[f.calls]
	delete(f.planned, f.calls)
	return err
}

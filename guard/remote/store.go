// Package remote is the guard store of a server: programs that open ferry://host:7070 share limits, slots, marks and
// breakers through it, as they share the broker.
//
// A [Store] is one in a program; a [Server] answers for the store behind a gateway. What travels between them are the
// methods of guard/store, in JSON inside of frames.
package remote

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/internal/frame"
	"github.com/ferrymq/ferry/internal/framecall"
)

// Options of a Store.
type Options struct {
	// URL of the server: ferry://host:7070, or ferrys://host:7070 over TLS. Required.
	URL string
	// Token says who asks: one with the scope consume on every topic.
	Token string
	// TokenFile has the token instead, and nobody else may read it. It is read for each call.
	TokenFile string
	// TLS is for ferrys://. Defaults to the system's authorities.
	TLS *tls.Config
	// Dial connects to the server. Defaults to that of net.Dialer, with a timeout of 10 seconds.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Timeout is how long a call waits for the server. Defaults to 2 s.
	Timeout time.Duration
}

// Store asks the guard store of a server.
type Store struct {
	client  *framecall.Client
	timeout time.Duration
}

var _ store.Store = (*Store)(nil)

const defaultTimeout = 2 * time.Second

// Open connects to a server. ErrUnsupported says that it has no guard store.
func Open(ctx context.Context, o Options) (*Store, error) {
	client, err := framecall.New(framecall.Options{URL: o.URL, Token: o.Token, TokenFile: o.TokenFile,
		TLS: o.TLS, Dial: o.Dial})
	if err != nil {
		return nil, err
	}
	s := &Store{client: client, timeout: defaultTimeout}
	if o.Timeout > 0 {
		s.timeout = o.Timeout
	}
	var w frame.Welcome
	if err := client.Call(ctx, frame.CallHello, &frame.Nothing{}, &w, driver.ErrNotApplied); err != nil {
		client.Close()
		return nil, err
	}
	client.SetLimit(w.MaxFrame)
	if _, err := ask[nothing](ctx, s, methodHello, nothing{}); err != nil {
		client.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the connections. What the server keeps stays.
func (s *Store) Close(context.Context) error {
	s.client.Close()
	return nil
}

// ask calls a method. If its answer is lost nobody knows whether anything changed, and asking again is safe.
func ask[A any](ctx context.Context, s *Store, method string, q any) (a A, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	data, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	var answer frame.Bytes
	if err := s.client.Call(ctx, frame.CallGuard, &frame.Guard{Method: method, Data: data}, &answer,
		driver.ErrUnknown); err != nil {
		return a, err
	}
	return a, json.Unmarshal(answer, &a)
}

// tell calls a method that returns an error only.
func tell(ctx context.Context, s *Store, method string, q any) error {
	_, err := ask[nothing](ctx, s, method, q)
	return err
}

// Take asks whether a message may pass all its items.
func (s *Store) Take(ctx context.Context, t store.Take) (store.Verdict, error) {
	return ask[store.Verdict](ctx, s, methodTake, t)
}

// Return gives back what an admitted Take counted.
func (s *Store) Return(ctx context.Context, t store.Take, ticket uint64) error {
	return tell(ctx, s, methodReturn, returning{t, ticket})
}

// Acquire takes a slot, or renews it.
func (s *Store) Acquire(ctx context.Context, r store.SlotRequest) (store.Slot, error) {
	return ask[store.Slot](ctx, s, methodAcquire, r)
}

// Release frees a slot.
func (s *Store) Release(ctx context.Context, r store.SlotRequest) error {
	return tell(ctx, s, methodRelease, r)
}

// Begin says whether work was done, or begins it.
func (s *Store) Begin(ctx context.Context, r store.MarkRequest) (store.Mark, error) {
	return ask[store.Mark](ctx, s, methodBegin, r)
}

// Complete marks work as done.
func (s *Store) Complete(ctx context.Context, r store.MarkRequest) error {
	return tell(ctx, s, methodComplete, r)
}

// Abort gives work up.
func (s *Store) Abort(ctx context.Context, r store.MarkRequest) error {
	return tell(ctx, s, methodAbort, r)
}

// Change applies what an operator says.
func (s *Store) Change(ctx context.Context, c store.Change) error {
	return tell(ctx, s, methodChange, c)
}

// Status tells everything about one key.
func (s *Store) Status(ctx context.Context, limit, key string) (store.Status, error) {
	return ask[store.Status](ctx, s, methodStatus, place{limit, key})
}

// List returns keys of one kind.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	return ask[store.Page](ctx, s, methodList, q)
}

// Rules returns the rules that operators have set.
func (s *Store) Rules(ctx context.Context) ([]store.SharedRule, error) {
	return ask[[]store.SharedRule](ctx, s, methodRules, nothing{})
}

// Audit returns the newest changes.
func (s *Store) Audit(ctx context.Context, max int) ([]store.Change, error) {
	return ask[[]store.Change](ctx, s, methodAudit, max)
}

// Report stores the breakers of one process.
func (s *Store) Report(ctx context.Context, instance string, breakers []store.BreakerStatus) ([]store.Forced, error) {
	return ask[[]store.Forced](ctx, s, methodReport, report{instance, breakers})
}

// Reports returns what every process has reported lately.
func (s *Store) Reports(ctx context.Context) ([]store.BreakerStatus, error) {
	return ask[[]store.BreakerStatus](ctx, s, methodReports, nothing{})
}

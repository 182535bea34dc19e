package remote

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard/store"
)

// Names of methods on their way.
const (
	methodHello    = "hello"
	methodTake     = "take"
	methodReturn   = "return"
	methodAcquire  = "acquire"
	methodRelease  = "release"
	methodBegin    = "begin"
	methodComplete = "complete"
	methodAbort    = "abort"
	methodChange   = "change"
	methodStatus   = "status"
	methodList     = "list"
	methodRules    = "rules"
	methodAudit    = "audit"
	methodReport   = "report"
	methodReports  = "reports"
)

// What a method takes that has more than one value, or none.
type (
	nothing   struct{}
	returning struct {
		Take   store.Take
		Ticket uint64
	}
	place  struct{ Limit, Key string }
	report struct {
		Instance string
		Breakers []store.BreakerStatus
	}
)

// method is one of a store: which scope it takes, on every topic since limits belong to none, and what answers.
type method struct {
	scope auth.Scope
	run   func(s *Server, ctx context.Context, data []byte) (any, error)
}

// asked is a method that answers with a value.
func asked[Q, A any](scope auth.Scope, f func(s *Server, ctx context.Context, q Q) (A, error)) method {
	return method{scope, func(s *Server, ctx context.Context, data []byte) (any, error) {
		var q Q
		if err := json.Unmarshal(data, &q); err != nil {
			return nil, driver.NewError(driver.ErrInvalid, "what a guard asks cannot be read",
				"use the same release of Ferry on both sides", err)
		}
		return f(s, ctx, q)
	}}
}

// told is a method that returns an error only.
func told[Q any](scope auth.Scope, f func(s *Server, ctx context.Context, q Q) error) method {
	return asked(scope, func(s *Server, ctx context.Context, q Q) (nothing, error) { return nothing{}, f(s, ctx, q) })
}

// methods are all of a store. What guards ask is for who consumes, what people ask for who looks or operates.
var methods = map[string]method{
	methodHello:    told(auth.Consume, (*Server).hello),
	methodTake:     asked(auth.Consume, (*Server).take),
	methodReturn:   told(auth.Consume, (*Server).giveBack),
	methodAcquire:  asked(auth.Consume, (*Server).acquire),
	methodRelease:  told(auth.Consume, (*Server).release),
	methodBegin:    asked(auth.Consume, (*Server).begin),
	methodComplete: told(auth.Consume, (*Server).complete),
	methodAbort:    told(auth.Consume, (*Server).abort),
	methodReport:   asked(auth.Consume, (*Server).report),
	methodChange:   told(auth.Operate, (*Server).change),
	methodStatus:   asked(auth.View, (*Server).status),
	methodList:     asked(auth.View, (*Server).list),
	methodRules:    asked(auth.View, (*Server).rules),
	methodAudit:    asked(auth.View, (*Server).audit),
	methodReports:  asked(auth.View, (*Server).reports),
}

// checkItems refuses what a guard never asks, and a store need not expect.
func checkItems(items []store.Item) error {
	for _, item := range items {
		if item.Rule == nil {
			return driver.NewError(driver.ErrInvalid, "an item has no rule", "send the rule of the limit", nil)
		}
		if err := item.Rule.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Server answers for a store. Slots and marks in progress of a store that lives in the server's process end when their
// lease is over: the program that has them may be gone.
type Server struct {
	store  store.Store
	leases leases
}

// NewServer returns what answers for a store, which stays the caller's.
func NewServer(s store.Store) *Server { return &Server{store: s, leases: newLeases()} }

// Close ends leases that are kept for clients: what they hold is given up.
func (s *Server) Close() { s.leases.close() }

// Scope is what a method takes, on every topic. ErrUnsupported for one that is not known.
func (s *Server) Scope(name string) (auth.Scope, error) {
	m, known := methods[name]
	if !known {
		return "", driver.NewError(driver.ErrUnsupported, fmt.Sprintf("guard stores have no method %.40q", name),
			"use the same release of Ferry on both sides", nil)
	}
	return m.scope, nil
}

// Answer runs a method that Scope knows.
func (s *Server) Answer(ctx context.Context, name string, data []byte) ([]byte, error) {
	answer, err := methods[name].run(s, ctx, data)
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

func (s *Server) hello(context.Context, nothing) error { return nil }

func (s *Server) take(ctx context.Context, q store.Take) (store.Verdict, error) {
	if err := checkItems(q.Items); err != nil {
		return store.Verdict{}, err
	}
	return s.store.Take(ctx, q)
}

func (s *Server) giveBack(ctx context.Context, q returning) error {
	if err := checkItems(q.Take.Items); err != nil {
		return err
	}
	return s.store.Return(ctx, q.Take, q.Ticket)
}

func (s *Server) report(ctx context.Context, q report) ([]store.Forced, error) {
	return s.store.Report(ctx, q.Instance, q.Breakers)
}

// change applies what an operator says. Who that is the server knows: what the client says of it is not taken for true.
func (s *Server) change(ctx context.Context, c store.Change) error {
	if who := auth.From(ctx); who.Name != c.Actor {
		c.Actor = who.String()
	}
	if err := c.Validate(); err != nil {
		return err
	}
	return s.store.Change(ctx, c)
}

func (s *Server) status(ctx context.Context, q place) (store.Status, error) {
	return s.store.Status(ctx, q.Limit, q.Key)
}

func (s *Server) list(ctx context.Context, q store.Query) (store.Page, error) {
	return s.store.List(ctx, q)
}

func (s *Server) rules(ctx context.Context, _ nothing) ([]store.SharedRule, error) {
	return s.store.Rules(ctx)
}

func (s *Server) audit(ctx context.Context, most int) ([]store.Change, error) {
	return s.store.Audit(ctx, most)
}

func (s *Server) reports(ctx context.Context, _ nothing) ([]store.BreakerStatus, error) {
	return s.store.Reports(ctx)
}

func slotName(r store.SlotRequest) lease { return lease{"slot", r.Limit, r.Key, r.Token} }
func markName(r store.MarkRequest) lease { return lease{"mark", r.Name, r.ID, r.Token} }

// acquire takes or renews a slot. The lease of one that is renewed is put off before, so that its end cannot come in
// between.
func (s *Server) acquire(ctx context.Context, r store.SlotRequest) (store.Slot, error) {
	s.leases.drop(slotName(r))
	slot, err := s.store.Acquire(ctx, r)
	held := r
	if err == nil {
		held.Token = slot.Token
	}
	if (err != nil || slot.Held) && held.Token != 0 && !slot.Leased {
		// in this process it does not fail
		s.leases.keep(slotName(held), r.Lease, func(ctx context.Context) { _ = s.store.Release(ctx, held) })
		slot.Leased = true
	}
	return slot, err
}

func (s *Server) release(ctx context.Context, r store.SlotRequest) error {
	s.leases.drop(slotName(r))
	return s.store.Release(ctx, r)
}

// begin begins work or renews it, as acquire does.
func (s *Server) begin(ctx context.Context, r store.MarkRequest) (store.Mark, error) {
	s.leases.drop(markName(r))
	mark, err := s.store.Begin(ctx, r)
	held := r
	if err == nil {
		held.Token = mark.Token
	}
	if (err != nil || mark.Ours) && held.Token != 0 && !mark.Leased {
		s.leases.keep(markName(held), r.Lease, func(ctx context.Context) { _ = s.store.Abort(ctx, held) }) // as above
		mark.Leased = true
	}
	return mark, err
}

func (s *Server) complete(ctx context.Context, r store.MarkRequest) error {
	s.leases.drop(markName(r))
	return s.store.Complete(ctx, r)
}

func (s *Server) abort(ctx context.Context, r store.MarkRequest) error {
	s.leases.drop(markName(r))
	return s.store.Abort(ctx, r)
}

package transaction

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// ResolverOptions of a Resolver. The zero value finishes what is decided, and rolls back what nobody decides in time.
type ResolverOptions struct {
	// Checks are asked for the transactions of their kind. Other kinds are left to other resolvers, until their TTL is
	// over.
	Checks map[string]Check
	// After is how long after its last half a transaction is checked back. Defaults to a minute.
	After time.Duration
	// Every is how often it is asked again. Defaults to 30 s; at least a second.
	Every time.Duration
	// Timeout is how long one Check may take. Defaults to 10 s.
	Timeout time.Duration
	// Look is how often the resolver looks for transactions. Defaults to 5 s.
	Look time.Duration
}

const (
	// graceFor is how long whoever decided has for the rest, before others do it.
	graceFor = 5 * time.Second
	abreast  = 16 // transactions that are looked after at the same time
)

// Resolver ends the transactions of producers that vanished. Any number of programs may run one; a transaction is
// looked after by one at a time.
type Resolver struct {
	store
	o     ResolverOptions
	calls calls
}

// NewResolver checks the options and returns a Resolver. It starts nothing: Run does.
func NewResolver(b *ferry.Broker, o ResolverOptions) (*Resolver, error) {
	switch {
	case b == nil:
		return nil, driver.NewError(ferry.ErrInvalid, "the broker is nil", "open one first, with open.URL for example", nil)
	case o.After < 0 || o.Every < 0 || o.Timeout < 0 || o.Look < 0:
		return nil, driver.NewError(ferry.ErrInvalid, "a time of the resolver is negative",
			"leave it zero for the default", nil)
	case o.Every != 0 && o.Every < driver.MinValueTTL:
		return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("asking every %v is not possible", o.Every),
			fmt.Sprintf("use at least %v", driver.MinValueTTL), nil)
	}
	for kind, check := range o.Checks {
		if err := driver.CheckName("kind", kind); err != nil {
			return nil, err
		}
		if check == nil {
			return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("the check of kind %q is nil", kind),
				"give it a function", nil)
		}
	}
	for at, preset := range map[*time.Duration]time.Duration{&o.After: time.Minute, &o.Every: 30 * time.Second,
		&o.Timeout: 10 * time.Second, &o.Look: 5 * time.Second} {
		if *at == 0 {
			*at = preset
		}
	}
	return &Resolver{store: newStore(b), o: o}, nil
}

// Run looks after transactions until ctx ends, and then returns nil. A broker that is away for a time does not end it.
func (r *Resolver) Run(ctx context.Context) error {
	defer r.calls.returns.Wait()
	troubled := false
	for ctx.Err() == nil {
		err := r.look(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, driver.ErrUnsupported), errors.Is(err, driver.ErrClosed), errors.Is(err, driver.ErrRefused):
			return err
		case err != nil && !troubled:
			r.log.WarnContext(ctx, "transactions cannot be looked after, and are tried again", "error", err)
		}
		troubled = err != nil
		sleep(ctx, r.o.Look)
	}
	return nil
}

// look goes through all transactions that are not done, once.
func (r *Resolver) look(ctx context.Context) error {
	now, err := r.clock(ctx)
	if err != nil {
		return err
	}
	places := make(chan struct{}, abreast)
	var working sync.WaitGroup
	defer working.Wait()
	for q := (Query{}); ; {
		p, err := r.list(ctx, q)
		if err != nil {
			return err
		}
		for _, t := range p.Transactions {
			if !r.due(&t, now) {
				continue
			}
			select {
			case places <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			working.Go(func() {
				defer func() { <-places }()
				r.lookAfter(ctx, &t, now)
			})
		}
		if q.Cursor = p.Next; p.Next == "" {
			return nil
		}
	}
}

// clock returns the broker's time.
func (r *Resolver) clock(ctx context.Context) (time.Time, error) {
	v, err := r.apply(ctx, "", driver.Write{Name: "clock", TTL: driver.MinValueTTL, Quiet: true})
	return v.Written, err
}

// due reports whether something is to be done about a transaction.
func (r *Resolver) due(t *Transaction, now time.Time) bool {
	age := now.Sub(t.Written)
	switch {
	case t.mayBeLate():
		return age >= lateFor
	case t.State != Open:
		return age >= graceFor
	}
	return age >= t.TTL || r.o.Checks[t.Kind] != nil && age >= r.o.After
}

// lookAfter does what is due, unless another resolver does it just now.
func (r *Resolver) lookAfter(ctx context.Context, t *Transaction, now time.Time) {
	_, err := r.apply(ctx, t.ID, driver.Write{Name: claimPrefix + t.ID, If: driver.Absent, TTL: r.o.Every, Quiet: true})
	switch {
	case errors.Is(err, driver.ErrConflict):
		return
	case err == nil && t.State != Open:
		if err = r.resume(ctx, t); err == nil {
			r.done(ctx, t)
		}
	case err == nil:
		err = r.decideFor(ctx, t, now)
	}
	if err != nil && ctx.Err() == nil {
		r.log.WarnContext(ctx, "a transaction could not be looked after, and is the next time", "transaction", t.ID, "kind",
			t.Kind, "error", err)
	}
}

// decideFor decides a transaction whose producer did not, if that can be known.
func (r *Resolver) decideFor(ctx context.Context, t *Transaction, now time.Time) error {
	to, err := r.ask(ctx, t)
	by := ByCheck
	if to == Open && now.Sub(t.Written) >= t.TTL && ctx.Err() == nil {
		to, by = RolledBack, ByTimeout
	}
	switch to {
	case Open:
		return err
	case Committed:
		if err := r.whole(ctx, t); err != nil {
			return err
		}
	}
	decided, err := r.decide(ctx, *t, to, by)
	if err != nil {
		return err
	}
	r.log.WarnContext(ctx, "a transaction was decided for its producer", "transaction", t.ID, "kind", t.Kind, "subject",
		t.Subject, "state", string(decided.State), "by", decided.By)
	if !decided.Done {
		r.finish(ctx, decided, nil)
	}
	return nil
}

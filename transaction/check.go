package transaction

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Check says whether the work that a transaction belongs to was done, by a look into your database for example. Its
// producer has vanished, or is slow: it may still decide itself, and the first decision counts. It returns Committed,
// RolledBack, or Open if it does not know: then it is asked again. So it is after an error, which is logged.
//
// It has to return when ctx ends. One that does not holds up no other transaction, and its own is rolled back after its
// TTL; but it is not asked about that again before it has returned, and Resolver.Run waits for it at the end.
type Check func(ctx context.Context, t Transaction) (State, error)

// maxCalls bounds the checks that have not returned, most of them after their time was over.
const maxCalls = 1000

// calls are the checks under way.
type calls struct {
	mu      sync.Mutex
	asked   map[string]bool // ids of transactions
	returns sync.WaitGroup
}

// answer is what a Check said.
type answer struct {
	state State
	err   error
}

// ask asks the Check of a transaction, and waits no longer than it may take.
func (r *Resolver) ask(ctx context.Context, t *Transaction) (State, error) {
	check := r.o.Checks[t.Kind]
	if check == nil {
		return Open, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	answered := make(chan answer, 1)
	if !r.calls.begin(t.ID, func() { answered <- call(ctx, check, *t) }) {
		return Open, errors.New("an earlier check has not returned, although its time is over: let it return when its " +
			"context ends")
	}
	select {
	case a := <-answered:
		return a.state, a.err
	case <-ctx.Done():
		return Open, fmt.Errorf("the check has not answered: %w", context.Cause(ctx))
	}
}

// begin begins a call about a transaction, unless there is one, or too many are under way.
func (c *calls) begin(id string, do func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked[id] || len(c.asked) >= maxCalls {
		return false
	}
	if c.asked == nil {
		c.asked = map[string]bool{}
	}
	c.asked[id] = true
	c.returns.Go(func() {
		defer c.end(id)
		do()
	})
	return true
}

func (c *calls) end(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asked, id)
}

// call calls a Check; a panic of it is an error.
func call(ctx context.Context, check Check, t Transaction) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{Open, fmt.Errorf("the check panicked: %v", p)}
		}
	}()
	state, err := check(ctx, t)
	switch {
	case err != nil:
		return answer{Open, err}
	case state != Open && state != Committed && state != RolledBack:
		return answer{Open, fmt.Errorf("the check answered %q", state)}
	}
	return answer{state, nil}
}

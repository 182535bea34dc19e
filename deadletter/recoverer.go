package deadletter

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// RecovererOptions of a Recoverer. The zero value runs the shipped strategies over all topics.
type RecovererOptions struct {
	// Selection narrows which dead letters are looked at.
	Selection Selection
	// Strategies are asked in order; the first that takes a letter decides. Defaults to Strategies(Blocked).
	Strategies []Strategy
	// Blocked is given to the shipped strategies. May be nil.
	Blocked Blocked
	// VIP tells whose letters are important: of those that are due they come back first (see Recovery.Priority). Nil:
	// those published with priority high or urgent.
	VIP func(l Letter) bool
	// Version of the program. A new one brings back what waits for a deploy. Empty: those wait for ever.
	Version string
	// Interval is how often letters are looked at. Defaults to 10 seconds.
	Interval time.Duration
	// MaxScan is the most letters looked at each time; the rest follows the next time. Defaults to 10,000.
	MaxScan int
	// Rate is the most that come back in a second, the most important first. Zero: as fast as it goes.
	Rate float64
	// Escalate is told of every letter that is given up, once in the life of the process that runs the recovery. It stays
	// a dead letter.
	Escalate func(ctx context.Context, l Letter, strategy string)
	// Retention deletes dead letters that are beyond it, and ParseErrors what could not be decoded. Zero: nothing,
	// ever.
	Retention   Retention
	ParseErrors Retention
}

// RecovererStats are numbers of a recoverer. Counters begin with its process; the others are those of the last full
// pass.
type RecovererStats struct {
	Leading bool // this instance runs the recovery
	// Recovered went back to work, and DiedAgain are those among the dead that had been brought back before.
	Recovered uint64
	DiedAgain int
	// Unrecoverable were given up: their rounds or their time is used up.
	Unrecoverable int
	// AwaitingReview are left to people.
	AwaitingReview int
	// Waiting are not due; Blocked are due, but their key is blocked, or there was no deploy.
	Waiting, Blocked int
	// Failed could not be brought back.
	Failed uint64
	// Expired were deleted by the retention.
	Expired  uint64
	Passes   uint64
	LastPass time.Time
	LastErr  error
}

// Recoverer brings dead letters back by themselves. Any number may run; one of them works at a time, the leader of
// Duty.
type Recoverer struct {
	queue *Queue
	o     RecovererOptions

	mu        sync.Mutex
	stats     RecovererStats
	escalated map[string]int // letter to rounds; of the present process
	pass      pass
}

// NewRecoverer checks the options and returns a recoverer.
func NewRecoverer(q *Queue, opts RecovererOptions) (*Recoverer, error) {
	if q == nil {
		return nil, driver.NewError(driver.ErrInvalid, "the queue is nil", "make one with deadletter.New", nil)
	}
	if opts.Interval < 0 || opts.MaxScan < 0 || opts.Rate < 0 {
		return nil, driver.NewError(driver.ErrInvalid, "Interval, MaxScan or Rate is negative",
			"leave it zero for the default", nil)
	}
	if err := opts.Selection.check(); err != nil {
		return nil, err
	}
	if opts.Selection.State != driver.StateDead || len(opts.Selection.Only) > 0 {
		return nil, driver.NewError(driver.ErrInvalid, "only dead letters come back by themselves",
			"leave Selection.State and Only out", nil)
	}
	if err := errors.Join(opts.Retention.Check(), opts.ParseErrors.Check()); err != nil {
		return nil, err
	}
	if opts.Strategies == nil {
		opts.Strategies = Strategies(opts.Blocked)
	}
	for _, s := range opts.Strategies {
		if err := s.check(); err != nil {
			return nil, err
		}
	}
	if opts.Interval == 0 {
		opts.Interval = 10 * time.Second
	}
	if opts.MaxScan == 0 {
		opts.MaxScan = 10_000
	}
	return &Recoverer{queue: q, o: opts, escalated: map[string]int{}}, nil
}

// Run waits until this instance is the one that works, then looks at the dead letters every Interval, until ctx ends.
// It then returns nil. A broker that is away for a time does not end it; what is wrong is in Stats.
func (r *Recoverer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := r.lead(ctx, r.work)
		if errors.Is(err, driver.ErrClosed) || errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrUnsupported) ||
			errors.Is(err, driver.ErrRefused) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			r.note(err)
			_ = sleep(ctx, time.Second)
		}
	}
	return nil
}

// work looks at the letters while the lease is held.
func (r *Recoverer) work(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := r.Once(ctx); err != nil && ctx.Err() == nil {
			r.note(err)
		}
		timer.Reset(r.o.Interval)
	}
}

// Stats returns the numbers of the recoverer.
func (r *Recoverer) Stats() RecovererStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

func (r *Recoverer) leading(yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Leading = yes
}

func (r *Recoverer) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.LastErr = err
}

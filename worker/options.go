package worker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// HandlerOption changes one registration. Each has its default in the Options of the worker or stated with it.
type HandlerOption func(*handlerSettings)

// handlerSettings are what the options of one handler set.
type handlerSettings struct {
	group          string
	groups         []string // all that options named
	concurrency    int
	concurrencySet bool // by an option: it does not follow that of the worker
	maxAttempts    int
	retry          driver.RetryPolicy
	retryErr       error
	backoff        func(attempt int, err error) time.Duration // instead of retry
	backoffSet     bool
	timeout        time.Duration
	timeoutSet     bool
	lease          time.Duration
	order          driver.Order
	maxRun         int
	strictPriority bool
	weights        [4]int
	weightsSet     bool
	start          driver.Position
	middleware     []Middleware
	batchSize      int
	batchSet       bool // by an option
	batchWait      time.Duration
}

const (
	defaultMaxRun    = 32
	defaultBatchSize = 100
	defaultBatchWait = 50 * time.Millisecond
)

func (w *Worker) handlerDefaults() handlerSettings {
	return handlerSettings{
		group:       driver.DefaultGroup,
		concurrency: max(w.options.most(), 1), // what is wrong with an option of the worker is said once, of the worker
		maxAttempts: max(w.options.MaxAttempts, 1),
		retry:       w.options.Retry,
		lease:       max(w.options.Lease, 0),
		maxRun:      defaultMaxRun,
		batchSize:   defaultBatchSize,
		batchWait:   defaultBatchWait,
	}
}

// Group names the group this handler works for, one for each registration. Each group gets every message of the topic.
// Defaults to "default".
func Group(name string) HandlerOption {
	return func(s *handlerSettings) { s.group, s.groups = name, append(s.groups, name) }
}

// Concurrency bounds how many messages (or batches) of this handler run at once. Defaults to that of the worker,
// or to Scaling.Max.
func Concurrency(n int) HandlerOption {
	return func(s *handlerSettings) { s.concurrency, s.concurrencySet = n, true }
}

// MaxAttempts is how often a message is tried in all: 1 means no retry, ferry.Unlimited no end. A message may carry its
// own.
func MaxAttempts(n int) HandlerOption { return func(s *handlerSettings) { s.maxAttempts = n } }

// Retry says when a failed message is tried again. A message may carry its own policy.
func Retry(policy ferry.RetryPolicy) HandlerOption {
	return func(s *handlerSettings) { s.retry, s.retryErr = resolvePolicy(policy), policy.Check() }
}

// Backoff says how long a message waits after an attempt that failed (1 is the first) with err, in place of Retry: it
// cannot be stored with a message, and one that carries a policy of its own follows that. No wait and less mean now. It
// is called by several goroutines and must be quick; if it panics, the policy of Retry decides.
func Backoff(wait func(attempt int, err error) time.Duration) HandlerOption {
	return func(s *handlerSettings) { s.backoff, s.backoffSet = wait, true }
}

// Timeout ends the context of a handler that runs longer, and has the message retried (reason "timeout") even if the
// handler goes on: it then keeps its slot until it returns, and what it returns is refused. Defaults to none.
func Timeout(d time.Duration) HandlerOption {
	return func(s *handlerSettings) { s.timeout, s.timeoutSet = d, true }
}

// Relaxed lets followers of a key pass a message that waits for a retry. It belongs to the group: all members agree.
func Relaxed() HandlerOption { return func(s *handlerSettings) { s.order = driver.Relaxed } }

// StrictPriority always takes the highest priority there is; low ones may starve. Not together with Weights. Refused
// with ErrUnsupported on brokers where Capabilities.KeyedPriority is not driver.PriorityEverywhere: Redis Streams and
// Kafka read ahead.
func StrictPriority() HandlerOption { return func(s *handlerSettings) { s.strictPriority = true } }

// Weights share the claims between the priorities while several have messages. Each is 1 to 10,000. Default to 1, 4,
// 16, 64.
func Weights(low, normal, high, urgent int) HandlerOption {
	return func(s *handlerSettings) {
		s.weights, s.weightsSet = [4]int{low, normal, high, urgent}, true
	}
}

// Lease is how long a message stays ours without word from us: after a crash it is redelivered this much later.
// Handlers may run longer, the lease is renewed. Defaults to that of the worker.
func Lease(d time.Duration) HandlerOption { return func(s *handlerSettings) { s.lease = d } }

// MaxRun is how many messages of one key are held at once, which makes a hot key fast. Defaults to 32.
func MaxRun(n int) HandlerOption { return func(s *handlerSettings) { s.maxRun = n } }

// Start is where the group begins if this handler creates it: ferry.Beginning or ferry.Since. Defaults to what becomes
// ready from then on; anything before needs TopicConfig.Keep.
func Start(p ferry.Position) HandlerOption { return func(s *handlerSettings) { s.start = p } }

// Use wraps this handler in middleware, inside that of Worker.Use. The first is the outermost.
func Use(m ...Middleware) HandlerOption {
	return func(s *handlerSettings) { s.middleware = append(s.middleware, m...) }
}

// BatchSize is the most messages HandleBatch gets at once. Defaults to 100.
func BatchSize(n int) HandlerOption {
	return func(s *handlerSettings) { s.batchSize, s.batchSet = n, true }
}

// BatchWait is how long HandleBatch waits for a batch to fill. Defaults to 50 ms; zero takes what is there.
func BatchWait(d time.Duration) HandlerOption {
	return func(s *handlerSettings) { s.batchWait, s.batchSet = d, true }
}

func (s *handlerSettings) checkNumbers(bad func(hint, format string, args ...any)) {
	if slices.ContainsFunc(s.groups, func(name string) bool { return name != s.group }) {
		bad("give it one worker.Group, and register the handler once for each", "it names the groups %q", s.groups)
	}
	if s.strictPriority && s.weightsSet {
		bad("use one of them", "strict priority ignores weights")
	}
	var wrong *driver.Error
	if errors.As(s.retryErr, &wrong) {
		bad(wrong.Hint, "%s", wrong.Text)
	}
	if s.concurrency < 1 {
		bad("use 1 or more", "concurrency %d", s.concurrency)
	}
	if s.maxAttempts < 1 {
		bad("use 1 for no retry", "max attempts %d", s.maxAttempts)
	}
	if s.backoffSet && s.backoff == nil {
		bad("give it a function, or leave it out", "the back-off is nil")
	}
	if s.timeoutSet && s.timeout <= 0 {
		bad("leave it out for no timeout", "timeout %v", s.timeout)
	}
	if s.lease < 0 {
		bad("leave it out for the default", "lease %v", s.lease)
	}
	if s.maxRun < 1 {
		bad("use 1 to hold one message of a key at a time", "max run %d", s.maxRun)
	}
	if s.batchSize < 1 || s.batchWait < 0 {
		bad("use a size of 1 or more, and a wait of zero or more", "batch of %d in %v", s.batchSize, s.batchWait)
	}
	if s.weightsSet && (slices.Min(s.weights[:]) < 1 || slices.Max(s.weights[:]) > driver.MaxWeight) {
		bad(fmt.Sprintf("use 1 to %d for each lane, or StrictPriority", driver.MaxWeight), "weights %v", s.weights)
	}
	for _, m := range s.middleware {
		if m == nil {
			bad("give it a function", "a middleware is nil")
		}
	}
}

// subscription is what the broker is asked for.
func (s *handlerSettings) subscription(topic, instance string) driver.SubscribeOptions {
	return driver.SubscribeOptions{Topic: topic, Group: s.group, Instance: instance, Lease: s.lease,
		Order: s.order, MaxRun: s.maxRun,
		Weights: s.weights, StrictPriority: s.strictPriority, Start: s.start}
}

// resolvePolicy fills in the default waits, so that a policy that only limits the time does not retry without any.
func resolvePolicy(p driver.RetryPolicy) driver.RetryPolicy {
	if len(p.Delays) > 0 || p.Base > 0 {
		return p
	}
	p.Base = time.Second
	return p // Cap defaults to 10 minutes
}

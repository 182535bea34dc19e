package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Quiet stops the handlers of a topic and group from claiming messages, or with on false lets them go on. An empty
// group means every group of the topic, an empty topic every handler. What runs finishes, under its lease; what was
// fetched and has not started goes back at once, so that others may have it. It can be called before Run. ErrNotFound
// says that there is no such handler, and changes nothing.
//
// The subscription stands meanwhile. So on a broker with partitions (Redis Streams, Kafka) those of a quiet worker wait
// for it: stop it to have others take them.
func (w *Worker) Quiet(topic, group string, on bool) error {
	if w == nil {
		return errNilWorker
	}
	fits := func(t, g string) bool { return (topic == "" || topic == t) && (group == "" || group == g) }
	w.mu.Lock()
	defer w.mu.Unlock()
	found := false
	for _, h := range w.handlers {
		if fits(h.topic, h.group) {
			h.quiet, found = on, true
		}
	}
	if !found {
		return driver.NewError(ferry.ErrNotFound,
			fmt.Sprintf("the worker has no handler of topic %q, group %q", topic, group),
			"see Worker.Stats for those it has", nil)
	}
	if w.engine != nil {
		w.engine.quiet(fits, on)
	}
	return nil
}

func (e *engine) quiet(fits func(topic, group string) bool, on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.consumers {
		switch {
		case !fits(c.topic, c.group) || c.quiet == on:
		case on:
			c.rest()
		default:
			c.resume()
		}
	}
	e.makeRoom() // a quiet one leaves its share to the others
	e.wakeSlot()
}

// rest makes c quiet.
func (c *consumer) rest() {
	c.quiet = true
	if c.intake.shut != nil {
		c.intake.shut()
	}
	c.giveBackAll()
	c.settleSoon()
}

// resume lets c claim again.
func (c *consumer) resume() {
	c.quiet = false
	if c.intake.shut != nil {
		c.intake.open, c.intake.shut = context.WithCancel(c.e.working)
	}
}

// openIntake begins the claims of c. It returns what ends them.
func (c *consumer) openIntake() (end func()) {
	e := c.e
	e.mu.Lock()
	defer e.mu.Unlock()
	c.intake.open, c.intake.shut = context.WithCancel(e.working)
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		c.intake.shut()
	}
}

// cutTime is how long a claim that was cut off may take to tell what it took.
const cutTime = 100 * time.Millisecond

// collectCut returns what a claim took that was under way when c was made quiet. It goes back at once, not when its
// lease ends.
func (c *consumer) collectCut(ctx context.Context, n int) []*driver.Delivery {
	ctx, cancel := context.WithTimeout(ctx, cutTime)
	defer cancel()
	ds, _ := c.conn.Receive(ctx, n) // an error comes again with the next claim
	return ds
}

// claiming returns the consumers that are not quiet.
func (e *engine) claiming() []*consumer {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.consumers), func(c *consumer) bool { return c.quiet })
}

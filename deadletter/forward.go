package deadletter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Headers that a message gets on its way to another topic, so that its earlier life can be found.
const (
	HeaderReplayOf = "ferry-replay-of" // topic/group/id
	HeaderRounds   = "ferry-rounds"    // how often it died before
)

// ForwardWindow is how long a letter that was published to another topic, but not yet deleted here, is recognised
// there.
const ForwardWindow = 24 * time.Hour

// forwardID is the id of a letter in another topic: the same each time, so that a repeat is a duplicate.
func forwardID(l Letter) string {
	return driver.EmitID(fmt.Sprintf("replay/%s/%s/%s/%s", l.From, l.Group, l.Ref, l.name()), l.rounds())
}

// forwarded returns the message that a letter becomes in another topic.
func forwarded(l Letter, m *driver.Message, after time.Duration) *driver.Message {
	id := forwardID(l)
	m.ID, m.OwnID, m.DedupID, m.DedupWindow = id, true, id, ForwardWindow
	m.Delay, m.At, m.PublishedAt = after, time.Time{}, time.Time{}
	if m.TTL > 0 && m.TTL <= after {
		m.TTL = 0
	}
	linked(m, l.From+"/"+l.Group+"/"+l.name(), l.rounds()+1)
	return m
}

// linked notes the earlier life of a message in its headers.
func linked(m *driver.Message, from string, rounds int) {
	headers := make(map[string]string, len(m.Headers)+2)
	for k, v := range m.Headers {
		headers[k] = v
	}
	if n, err := strconv.Atoi(headers[HeaderRounds]); err == nil && n > 0 {
		rounds += n
	}
	headers[HeaderReplayOf], headers[HeaderRounds] = from, strconv.Itoa(rounds)
	m.Headers = headers
}

// forward publishes letters to another topic and then deletes them. Killed in between, it is repeated, and the publish
// is a duplicate.
func (op *Operation) forward(ctx context.Context, list []ready) error {
	if len(list) == 0 {
		return nil
	}
	msgs := make([]*driver.Message, len(list))
	for i, r := range list {
		msgs[i] = r.msg
	}
	receipts := op.queue.publish(ctx, msgs)
	var failed error
	var sent []ready
	var targets []driver.Target
	for i, r := range list {
		switch err := receipts[i].Err; {
		case err == nil:
			sent, targets = append(sent, r), append(targets, r.letter.Target())
		case permanent(err):
			op.skip(outcomeOf(r.letter), err)
		case failed == nil:
			failed = fmt.Errorf("replay of letter %s to topic %s: %w", r.letter.name(), op.replay.To, err)
		}
	}
	for i, err := range op.queue.delete(ctx, targets) {
		out := outcomeOf(sent[i].letter)
		out.To, out.NewID = op.replay.To, sent[i].msg.ID
		switch {
		case err == nil:
			op.succeed(out)
		case permanent(err): // somebody else replayed it meanwhile
			op.skip(out, err)
		case failed == nil:
			failed = fmt.Errorf("letter %s is in topic %s, and not deleted here: %w", out.ID, op.replay.To, err)
		}
	}
	return failed
}

// publish publishes messages that carry dedup ids, again if the outcome is unknown: a repeat is a duplicate.
func (q *Queue) publish(ctx context.Context, msgs []*driver.Message) []driver.Receipt {
	receipts := make([]driver.Receipt, len(msgs))
	for i := range receipts {
		receipts[i].Err = driver.ErrUnknown
	}
	for try := range learnTries {
		if err := sleep(ctx, time.Duration(try)*200*time.Millisecond); err != nil {
			break
		}
		// All of them, not only the unknown ones: the order of a key is that of the slice.
		got, _ := q.driver.Publish(ctx, msgs, driver.PublishOptions{})
		again := false
		for i := range receipts {
			if i < len(got) && receipts[i].Err != nil {
				receipts[i] = got[i]
			}
			again = again || errors.Is(receipts[i].Err, driver.ErrUnknown)
		}
		if !again {
			break
		}
	}
	return receipts
}

// delete removes letters; one that is gone already counts as removed.
func (q *Queue) delete(ctx context.Context, targets []driver.Target) []error {
	errs := make([]error, len(targets))
	open := make([]int, len(targets)) // those whose outcome is not known
	for i := range open {
		open[i] = i
	}
	for try := 0; len(open) > 0 && try < learnTries && sleep(ctx, time.Duration(try)*200*time.Millisecond) == nil; try++ {
		part := make([]driver.Target, len(open))
		for i, n := range open {
			part[i] = targets[n]
		}
		got := q.driver.Delete(ctx, part)
		unknown := open[:0]
		for i, n := range open {
			switch err := answer(got, i); {
			case errors.Is(err, driver.ErrNotFound):
				errs[n] = nil
			case errors.Is(err, driver.ErrUnknown):
				errs[n] = err
				unknown = append(unknown, n)
			default:
				errs[n] = err
			}
		}
		open = unknown
	}
	for _, n := range open {
		if errs[n] == nil { // ctx had ended before
			errs[n] = driver.ErrUnknown
		}
	}
	return errs
}

package deadletter

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/letterjson"
)

// ImportOptions says how exported letters come back: as messages to be handled, because only a broker makes dead
// letters.
type ImportOptions struct {
	// To is the topic they are published to. Defaults to the one each came from.
	To string
	// EveryGroup allows a topic with several groups, each of which then gets the messages.
	EveryGroup bool
	// RawBody publishes what could not be decoded with the bytes that were found as its body. Otherwise it is refused.
	RawBody bool
	// DryRun only reads and checks.
	DryRun bool
}

// ImportReport is what an import did.
type ImportReport struct {
	Lines     int // letters read
	Published int
	// Present were left out: the broker still has the message, in the group where it died or from an earlier import.
	Present int
	// Duplicates were imported before.
	Duplicates int
}

// maxComplaints bounds how many bad lines one error names.
const maxComplaints = 10

// Import publishes letters that Export or the emergency file of a worker wrote as NDJSON. All lines are checked before
// the first is published: if one is bad, the error names its line and nothing was imported. Ids derive from the
// letters, so that an import repeated within ForwardWindow publishes nothing twice.
func (q *Queue) Import(ctx context.Context, r io.ReadSeeker, im ImportOptions) (ImportReport, error) {
	var got ImportReport
	topics := map[string]bool{}
	if err := q.validate(ctx, r, im, &got, topics); err != nil {
		return got, err
	}
	for topic := range topics {
		if err := q.checkGroups(ctx, topic, im.EveryGroup); err != nil {
			return got, err
		}
	}
	if im.DryRun {
		return got, nil
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return got, driver.NewError(driver.ErrInvalid, "the import cannot be read twice",
			"copy it to a file first; nothing was imported", err)
	}
	b := batch{queue: q, got: &got}
	err := q.eachLine(ctx, r, func(n int, line []byte) error {
		m, record, err := q.imported(ctx, line, im)
		if err != nil {
			return badLine(n, err) // it changed under our eyes
		}
		return b.add(ctx, m, record)
	})
	if err == nil {
		err = b.flush(ctx)
	}
	if err != nil {
		return got, driver.NewError(driver.ErrUnknown,
			fmt.Sprintf("the import stopped after %d of %d letters", got.Published+got.Present+got.Duplicates, got.Lines),
			"run it again: what was imported is not imported twice", err)
	}
	return got, nil
}

// validate reads everything, and returns one error for all bad lines.
func (q *Queue) validate(ctx context.Context, r io.Reader, im ImportOptions, got *ImportReport,
	topics map[string]bool) error {
	var bad []error
	err := q.eachLine(ctx, r, func(n int, line []byte) error {
		got.Lines++
		m, _, err := q.imported(ctx, line, im)
		if err != nil {
			if bad = append(bad, badLine(n, err)); len(bad) == maxComplaints {
				return errTooManyBad
			}
			return nil
		}
		topics[m.Topic] = true
		return nil
	})
	if err != nil && !errors.Is(err, errTooManyBad) {
		bad = append(bad, err)
	}
	if len(bad) == 0 {
		return nil
	}
	return driver.NewError(driver.ErrInvalid, "nothing was imported", "mend these lines, or take them out",
		errors.Join(bad...))
}

var errTooManyBad = errors.New("too many bad lines")

func badLine(n int, err error) error { return fmt.Errorf("line %d: %w", n, err) }

// imported turns a line into the message to publish.
func (q *Queue) imported(ctx context.Context, line []byte, im ImportOptions) (*driver.Message,
	letterjson.Record, error) {
	r, err := letterjson.Decode(line)
	if err != nil {
		return nil, r, err
	}
	if r.State != driver.StateDead && (r.State != driver.StateInvalid || !im.RawBody) {
		return nil, r, fmt.Errorf("a message that is %.40q cannot be imported, only dead letters", string(r.State))
	}
	if err := r.Check(time.Now()); err != nil {
		return nil, r, err
	}
	stored, err := r.Message()
	if err != nil {
		return nil, r, err
	}
	m, err := q.broker.UndoFilters(ctx, stored) // before it gets another id
	if err != nil {
		return nil, r, err
	}
	if r.State == driver.StateDead && m.ID == "" {
		return nil, r, errors.New("it has no id")
	}
	rounds, name := 0, m.ID
	if r.Dead != nil {
		rounds = r.Dead.Rounds
	}
	if name == "" {
		name = r.Ref
	}
	if im.To != "" {
		m.Topic = im.To
	}
	// Not its old id: that may still be remembered, of the message that died.
	m.ID = driver.EmitID(fmt.Sprintf("import/%s/%s/%s/%s", m.Topic, r.Topic, r.Group, name), rounds)
	m.OwnID, m.DedupID, m.DedupWindow = true, m.ID, ForwardWindow
	linked(m, r.Topic+"/"+r.Group+"/"+name, rounds+1)
	if err := driver.CheckTopic(m.Topic); err != nil {
		return nil, r, err
	}
	if err := m.Validate(q.maxBody); err != nil {
		return nil, r, err
	}
	return m, r, q.broker.ApplyFilters(ctx, m)
}

// checkGroups refuses a topic whose other groups would get what died in one of them.
func (q *Queue) checkGroups(ctx context.Context, topic string, every bool) error {
	st, err := q.driver.Stats(ctx, topic)
	if errors.Is(err, driver.ErrNotFound) {
		return nil // the publish creates it
	}
	if err == nil && len(st.Groups) > 1 && !every {
		err = driver.NewError(driver.ErrConflict,
			fmt.Sprintf("topic %s has %d groups, and each would get the messages; nothing was imported", topic, len(st.Groups)),
			"import to a topic that only one group reads (To, --to), or allow it (EveryGroup, --every-group)", nil)
	}
	return err
}

// batch gathers messages of an import.
type batch struct {
	queue *Queue
	got   *ImportReport
	msgs  []*driver.Message
}

// add queues a message, unless the broker still has it where it died, or from an earlier import.
func (b *batch) add(ctx context.Context, m *driver.Message, r letterjson.Record) error {
	known := []driver.Target{{Topic: m.Topic, ID: m.ID}}
	if r.ID != "" {
		known = append(known, driver.Target{Topic: r.Topic, Group: r.Group, ID: r.ID})
	}
	for _, t := range known {
		_, err := b.queue.driver.Get(ctx, t)
		if err == nil {
			b.got.Present++
			return nil
		}
		if !errors.Is(err, driver.ErrNotFound) {
			return err
		}
	}
	if b.msgs = append(b.msgs, m); len(b.msgs) < replayPart {
		return nil
	}
	return b.flush(ctx)
}

func (b *batch) flush(ctx context.Context) error {
	if len(b.msgs) == 0 {
		return nil
	}
	var failed error
	for _, r := range b.queue.publish(ctx, b.msgs) {
		switch {
		case r.Err != nil:
			failed = r.Err
		case r.Duplicate:
			b.got.Duplicates++
		default:
			b.got.Published++
		}
	}
	b.msgs = b.msgs[:0]
	return failed
}

// eachLine reads lines of bounded length. Empty ones are skipped, and counted as lines.
func (q *Queue) eachLine(ctx context.Context, r io.Reader, visit func(n int, line []byte) error) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 64<<10), 6*q.maxBody+(1<<20)) // a byte may take six as \u0000
	n := 0
	for scanner.Scan() {
		n++
		if n%pagePart == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if line := bytes.TrimSpace(scanner.Bytes()); len(line) > 0 {
			if err := visit(n, line); err != nil {
				return err
			}
		}
	}
	if err := scanner.Err(); err != nil {
		return badLine(n+1, err)
	}
	return nil
}

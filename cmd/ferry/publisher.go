package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// publisher sends messages in batches, and can always say how far it got.
type publisher struct {
	s        session
	unit     string // what a place counts: "line" or "message"
	size     int
	receipts *listing[receiptView]

	batch  []*ferry.Message
	places []int // of the messages of the batch
	done   int   // everything up to this place is published

	sent, duplicates int
	read             int64 // bytes
	progress         *progress
}

// receiptView is what became of one message.
type receiptView struct {
	ID        string `json:"id"`
	Ref       string `json:"ref,omitempty"`
	Topic     string `json:"topic"`
	Duplicate bool   `json:"duplicate,omitempty"`
	Spooled   bool   `json:"spooled,omitempty"` // not in the broker yet
	when      string
}

func newPublisher(s session, unit string, size int) *publisher {
	l := newListing(s.remote, []column[receiptView]{
		{cell: func(v receiptView) any { return v.ID }},
		{cell: func(v receiptView) any { return v.Topic }},
		{cell: func(v receiptView) any { return v.when }},
	})
	l.live = true
	return &publisher{s: s, unit: unit, size: size, receipts: l}
}

func (p *publisher) add(ctx context.Context, m *ferry.Message, place int) error {
	p.batch, p.places = append(p.batch, m), append(p.places, place)
	if len(p.batch) < p.size {
		return nil
	}
	return p.flush(ctx)
}

// flush publishes the batch.
func (p *publisher) flush(ctx context.Context) error {
	if len(p.batch) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return p.stop(p.places[0], context.Cause(ctx))
	}
	receipts, err := p.s.broker.PublishBatch(ctx, p.batch)
	if err != nil && len(receipts) == 0 {
		return p.stop(p.places[0], err)
	}
	failed := 0
	for i, r := range receipts {
		if r.Err != nil {
			failed++
			continue
		}
		if err := p.stored(p.batch[i], r); err != nil {
			return err
		}
	}
	if failed > 0 {
		return p.refused(receipts, failed)
	}
	p.done = p.places[len(p.places)-1]
	p.batch, p.places = p.batch[:0], p.places[:0]
	p.progress.show(p.read, p.sent)
	return nil
}

func (p *publisher) stored(m *ferry.Message, r ferry.Receipt) error {
	p.sent++
	v := receiptView{ID: r.ID, Topic: m.Topic, Duplicate: r.Duplicate, Spooled: r.Spooled, when: when(m)}
	if !r.Ref.IsZero() {
		v.Ref = r.Ref.String()
	}
	switch {
	case r.Duplicate:
		p.duplicates++
		v.when = "was there already"
	case r.Spooled:
		v.when = "spooled: the broker is away"
	}
	if p.progress != nil && p.s.format == formatTable { // a line for each of a million says less than their number
		return nil
	}
	return p.receipts.add(v)
}

func when(m *driver.Message) string {
	switch {
	case m.Delay > 0:
		return "delivers in " + m.Delay.String()
	case !m.At.IsZero() && !m.At.After(time.Now()):
		return "due now, its time is past"
	case !m.At.IsZero():
		return "delivers at " + clock(jsontime.At(m.At))
	}
	return ""
}

// end publishes what is left.
func (p *publisher) end(ctx context.Context, topic string) error {
	if err := p.flush(ctx); err != nil {
		return err
	}
	p.progress.clear()
	if p.progress != nil && p.s.format == formatTable {
		summary := fmt.Sprintf("published %d messages to %s", p.sent, topic)
		if p.duplicates > 0 {
			summary += fmt.Sprintf("; %d of them were there already", p.duplicates)
		}
		return p.s.sayf("%s", summary)
	}
	return p.receipts.end("")
}

// stop ends before a place that cannot be published, and says how far it got. Nothing of the batch was sent.
func (p *publisher) stop(place int, err error) error {
	first := place
	if len(p.places) > 0 {
		first = p.places[0]
	}
	p.account(fmt.Sprintf("nothing from %s %d on", p.unit, first))
	where := fmt.Sprintf("%s %d", p.unit, place)
	if errors.Is(err, context.Canceled) {
		return failure("interrupted", fmt.Sprintf("go on from %s %d", p.unit, first))
	}
	var wrong *usageError
	if errors.As(err, &wrong) {
		return usage(where+": "+wrong.text, wrong.hint)
	}
	return fmt.Errorf("%s: %w", where, err)
}

// mostRefused is how many refused messages are named; the others are counted.
const mostRefused = 3

// refused ends after a batch of which some were not stored, and says which.
func (p *publisher) refused(receipts []ferry.Receipt, failed int) error {
	unknown, named := 0, 0
	var err error
	for i, r := range receipts {
		if errors.Is(r.Err, ferry.ErrUnknown) {
			unknown++
		}
		if r.Err != nil && named < mostRefused {
			named++
			err = errors.Join(err, fmt.Errorf("%s %d: %w", p.unit, p.places[i], r.Err))
		}
	}
	first, last := p.places[0], p.places[len(p.places)-1]
	p.account(fmt.Sprintf("of %ss %d to %d, %d are published, %d are not, and of %d nobody knows; nothing after them",
		p.unit, first, last, len(receipts)-failed, failed-unknown, unknown))
	return err
}

// account says on standard error how far it got.
func (p *publisher) account(rest string) {
	p.progress.clear()
	_ = p.receipts.end("")
	upTo := ""
	if p.done > 0 {
		upTo = fmt.Sprintf(", all up to %s %d", p.unit, p.done)
	}
	p.s.notef("published %d messages%s; %s", p.sent, upTo, rest)
}

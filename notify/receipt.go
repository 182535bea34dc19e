package notify

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Status is how far a message or one of its targets is.
type Status string

// Statuses. Partial is of messages only: some targets were reached and others not.
const (
	Queued     Status = "queued"
	Processing Status = "processing"
	Success    Status = "success"
	Partial    Status = "partial"
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"
)

// Ended reports whether nothing more will happen.
func (s Status) Ended() bool { return s != Queued && s != Processing }

// Receipt is what became of a message so far.
type Receipt struct {
	MessageID string `json:"message_id"`
	Status    Status `json:"status"`
	// Total targets, of which Succeeded were reached and Failed were not; Cancelled are those that were called back.
	Total     int             `json:"total"`
	Succeeded int             `json:"succeeded"`
	Failed    int             `json:"failed"`
	Cancelled int             `json:"cancelled,omitempty"`
	Targets   []TargetReceipt `json:"targets"`
}

// TargetReceipt is what became of one target so far.
type TargetReceipt struct {
	// Channel and To are the target as it was asked for; of a URL only the host is shown.
	Channel string `json:"channel"`
	To      string `json:"to"`
	Status  Status `json:"status"`
	// Reached is who was reached in the end: the target, or one of its fallbacks.
	Reached *Reached `json:"reached,omitempty"`
	// Digest is the id of the digest that carried the message. Empty: it was sent by itself.
	Digest string `json:"digest,omitempty"`

	Code  Code   `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
	// Tried are the targets of the chain that failed for good.
	Tried []TriedTarget `json:"tried,omitempty"`
	// Attempts at the present target of the chain.
	Attempts int `json:"attempts"`
	// First is when it was first tried, and At when the receipt changed.
	First time.Time `json:"first,omitzero"`
	At    time.Time `json:"at,omitzero"`
	// Duration is how long the last send took.
	Duration time.Duration `json:"duration,omitempty"`

	Stage int `json:"stage,omitempty"` // of the chain
	Parts int `json:"parts,omitempty"` // that were sent
}

// Reached is a destination that took a message.
type Reached struct {
	Channel string `json:"channel"`
	To      string `json:"to"`
	// MessageID is what the vendor calls it. May be empty.
	MessageID string `json:"message_id,omitempty"`
}

// TriedTarget is a target of a chain that failed for good.
type TriedTarget struct {
	Channel string `json:"channel"`
	To      string `json:"to"`
	Code    Code   `json:"code"`
	Error   string `json:"error"`
}

// receiptOf sums up targets.
func receiptOf(id string, targets []TargetReceipt) Receipt {
	r := Receipt{MessageID: id, Total: len(targets), Targets: targets}
	queued := 0
	for _, t := range targets {
		switch t.Status {
		case Success:
			r.Succeeded++
		case Failed:
			r.Failed++
		case Cancelled:
			r.Cancelled++
		case Queued:
			queued++
		}
	}
	switch ended := r.Succeeded + r.Failed + r.Cancelled; {
	case queued == r.Total:
		r.Status = Queued
	case ended < r.Total:
		r.Status = Processing
	case r.Succeeded == r.Total:
		r.Status = Success
	case r.Succeeded > 0:
		r.Status = Partial
	case r.Cancelled == r.Total:
		r.Status = Cancelled
	default:
		r.Status = Failed
	}
	return r
}

// Get returns the receipt of a message. ErrNotFound: there is none, or it is not kept any more.
func Get(ctx context.Context, b *ferry.Broker, id string) (Receipt, error) {
	r, _, err := read(ctx, b, id)
	return r, err
}

// read returns the receipt and the records that it was made of.
func read(ctx context.Context, b *ferry.Broker, id string) (Receipt, []kept, error) {
	page, err := b.Driver().KV().List(ctx, driver.KVQuery{Bucket: bucketOf(id), Prefix: prefix(id), Limit: MaxTargets})
	if err != nil {
		return Receipt{}, nil, err
	}
	if len(page.Values) == 0 {
		return Receipt{}, nil, driver.NewError(ferry.ErrNotFound,
			fmt.Sprintf("there is no receipt of notification %.80q", id),
			"receipts are kept for Options.Keep after a target has ended", nil)
	}
	records, targets := make([]kept, len(page.Values)), make([]TargetReceipt, len(page.Values))
	for i, v := range page.Values {
		if records[i], err = decodeRecord(v); err != nil {
			return Receipt{}, nil, err
		}
		if records[i].index, err = strconv.Atoi(strings.TrimPrefix(v.Name, prefix(id))); err != nil {
			return Receipt{}, nil, driver.NewError(ferry.ErrInvalid, "the receipt "+v.Name+" is of no target",
				"see who else writes it", err)
		}
		targets[i] = records[i].TargetReceipt
	}
	return receiptOf(id, targets), records, nil
}

// lookEvery is how often a message is looked at while its first target that has not ended does not change.
const lookEvery = time.Second

// Watch calls progress with the receipt, now and whenever another target has ended, until every one has, and returns
// the last receipt.
func Watch(ctx context.Context, b *ferry.Broker, id string, progress func(Receipt)) (Receipt, error) {
	told := -1 // targets that had ended when progress was last called
	for {
		r, records, err := read(ctx, b, id)
		switch {
		case transient(err) && sleep(ctx, lookEvery):
			continue
		case err != nil:
			return r, err
		}
		if ended := r.Succeeded + r.Failed + r.Cancelled; progress != nil && ended != told {
			told = ended
			progress(r)
		}
		if r.Status.Ended() {
			return r, nil
		}
		if err := awaitChange(ctx, b, id, records); err != nil {
			return r, driver.NewError(err, fmt.Sprintf("notification %s has not ended: it is %s", id, r.Status),
				"allow more time, or see that a hub runs", nil)
		}
	}
}

// awaitChange waits until the first target that has not ended changes, for lookEvery at most. It fails when ctx ends.
func awaitChange(ctx context.Context, b *ferry.Broker, id string, records []kept) error {
	for _, k := range records {
		if k.Status.Ended() {
			continue
		}
		short, cancel := context.WithTimeout(ctx, lookEvery)
		_, err := b.Driver().KV().Wait(short, bucketOf(id), reference{id, k.index}.value(), k.revision)
		over := short.Err() != nil
		cancel()
		if err != nil && !over && ctx.Err() == nil && !sleep(ctx, lookEvery) { // the broker is away
			return context.Cause(ctx)
		}
		break
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Wait returns the receipt of a message when every target has ended. When ctx ends it is how far the message was.
func Wait(ctx context.Context, b *ferry.Broker, id string) (Receipt, error) {
	return Watch(ctx, b, id, nil)
}

// Cancel calls a message back, and returns how many targets are not sent to because of it. A target that is being sent
// to at this moment may still be reached, and so may one whose digest was ended and has other members; its receipt then
// says so.
func Cancel(ctx context.Context, b *ferry.Broker, id string) (int, error) {
	_, records, err := read(ctx, b, id)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, k := range records {
		ok, err := cancelTarget(ctx, b, reference{id, k.index}, k)
		if err != nil {
			return n, err
		}
		if ok {
			n++
		}
	}
	return n, nil
}

func cancelTarget(ctx context.Context, b *ferry.Broker, r reference, k kept) (bool, error) {
	s := records{kv: b.Driver().KV()}
	for !k.Status.Ended() {
		err := s.cancel(ctx, r, k)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, ferry.ErrConflict) {
			return false, err
		}
		found, err := s.get(ctx, r)
		if err != nil {
			return false, err
		}
		k = found[0]
	}
	return false, nil
}

// Handle is a message that was sent.
type Handle struct {
	// ID names the message, in this process and in others.
	ID     string
	broker *ferry.Broker
}

// Receipt is what became of the message so far.
func (h *Handle) Receipt(ctx context.Context) (Receipt, error) { return Get(ctx, h.broker, h.ID) }

// Wait returns the receipt when every target has ended.
func (h *Handle) Wait(ctx context.Context) (Receipt, error) { return Wait(ctx, h.broker, h.ID) }

// Watch calls progress whenever a target has ended.
func (h *Handle) Watch(ctx context.Context, progress func(Receipt)) (Receipt, error) {
	return Watch(ctx, h.broker, h.ID, progress)
}

// Cancel calls the message back.
func (h *Handle) Cancel(ctx context.Context) (int, error) { return Cancel(ctx, h.broker, h.ID) }

package ferry

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/unique"
)

// sender stores messages: a driver, behind what is done about those that ask to be unique. The messages are the
// sender's to change.
type sender interface {
	Publish(ctx context.Context, msgs []*Message, o driver.PublishOptions) ([]Receipt, error)
}

// namesTime is how long Close waits for notes of unique ids.
const namesTime = 5 * time.Second

// claimer is a sender that claims unique ids before it stores their messages.
type claimer struct {
	driver driver.Driver
	names  *unique.Keeper
}

// pipelined is a claimer on a driver that is a Pipeliner.
type pipelined struct {
	claimer
	ahead driver.Pipeliner
}

func newSender(d driver.Driver, names *unique.Keeper) sender {
	c := claimer{d, names}
	if ahead, ok := d.(driver.Pipeliner); ok {
		return pipelined{c, ahead}
	}
	return c
}

func (c claimer) Publish(ctx context.Context, msgs []*Message, o driver.PublishOptions) ([]Receipt, error) {
	if !unique.Wanted(msgs) {
		return c.driver.Publish(ctx, msgs, o)
	}
	s := c.claim(ctx, msgs, o)
	if len(s.msgs) == 0 {
		return s.receipts, s.errors()
	}
	receipts, err := c.driver.Publish(ctx, s.msgs, o)
	return s.conclude(ctx, receipts, err)
}

// Send is Publish in two steps: ids are claimed in the first, and what became of the messages is noted in the second.
func (p pipelined) Send(ctx context.Context, msgs []*Message, o driver.PublishOptions) func() ([]Receipt, error) {
	if !unique.Wanted(msgs) {
		return p.ahead.Send(ctx, msgs, o)
	}
	s := p.claim(ctx, msgs, o)
	if len(s.msgs) == 0 {
		return func() ([]Receipt, error) { return s.receipts, s.errors() }
	}
	wait := p.ahead.Send(ctx, s.msgs, o)
	return func() ([]Receipt, error) {
		receipts, err := wait()
		return s.conclude(ctx, receipts, err)
	}
}

// claimedSend is a batch of which some messages are unique.
type claimedSend struct {
	names    *unique.Keeper
	claims   []*unique.Claim // one for each message of the batch; nil: it is not unique
	receipts []Receipt       // likewise
	msgs     []*Message      // those that are sent
	at       []int           // where they are in the batch
}

// claim claims the ids of a batch. What is taken is not sent; of an atomic batch then nothing is.
func (c claimer) claim(ctx context.Context, msgs []*Message, o driver.PublishOptions) *claimedSend {
	s := &claimedSend{names: c.names, claims: c.names.Claim(ctx, msgs, o.Level), receipts: make([]Receipt, len(msgs))}
	for i, m := range msgs {
		if claim := s.claims[i]; claim != nil && claim.Err != nil {
			s.receipts[i] = Receipt{ID: holder(m, claim.Err), Err: claim.Err}
			s.claims[i] = nil
			continue
		}
		s.msgs, s.at = append(s.msgs, m), append(s.at, i)
	}
	if o.Atomic && len(s.msgs) < len(msgs) {
		s.giveUp(ctx)
	}
	return s
}

// holder is the id of the message that a receipt is about: that of the first one where it has the unique id.
func holder(m *Message, err error) string {
	var taken *UniqueError
	if errors.As(err, &taken) {
		return taken.ID
	}
	return m.ID
}

// giveUp undoes the claims of an atomic batch that is not sent.
func (s *claimedSend) giveUp(ctx context.Context) {
	var undone []*unique.Claim
	for n, i := range s.at {
		s.receipts[i] = Receipt{ID: s.msgs[n].ID,
			Err: driver.NewError(ErrNotApplied, "another message of the atomic batch has a unique id that is taken",
				"publish the batch without that one", nil)}
		if s.claims[i] != nil {
			undone = append(undone, s.claims[i])
		}
	}
	s.names.Undo(ctx, undone...)
	s.msgs, s.at = nil, nil
}

// conclude takes in what became of the messages that were sent: an id whose message is certainly not stored is free
// again.
func (s *claimedSend) conclude(ctx context.Context, receipts []Receipt, err error) ([]Receipt, error) {
	var undone []*unique.Claim
	for n, i := range s.at {
		r := Receipt{ID: s.msgs[n].ID, Err: errors.Join(ErrUnknown, err)} // unless the driver tells
		if n < len(receipts) {
			r = receipts[n]
		}
		s.receipts[i] = r
		switch claim := s.claims[i]; {
		case claim == nil:
		case r.Err == nil && r.Spooled: // the broker does not know it yet: that it is not there says nothing
		case r.Err == nil && r.Duplicate && (claim.First() || r.ID != s.msgs[n].ID): // nothing is stored under this claim
			undone = append(undone, claim)
		case r.Err == nil:
			s.names.Stored(claim, r)
		case !errors.Is(r.Err, ErrUnknown) && !errors.Is(r.Err, ErrClosed):
			undone = append(undone, claim)
		}
	}
	s.names.Undo(ctx, undone...)
	return s.receipts, s.errors()
}

// errors joins those of the receipts.
func (s *claimedSend) errors() error {
	var all []error
	for i := range s.receipts {
		if s.receipts[i].Err != nil {
			all = append(all, s.receipts[i].Err)
		}
	}
	return errors.Join(all...)
}

// closeNames writes what is still to be noted of unique ids.
func (b *Broker) closeNames(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, namesTime)
	defer cancel()
	b.names.Close(ctx)
}

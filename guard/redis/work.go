package redis

import (
	"context"

	"github.com/ferrymq/ferry/guard"
)

// slotting is one request for a slot.
type slotting struct {
	guard.SlotRequest
	op string
}

// Acquire implements guard.Slots. Slots are leases: those of a process that died are free when they end.
func (s *Store) Acquire(ctx context.Context, r guard.SlotRequest) (guard.Slot, error) {
	if r.Token == 0 {
		r.Token = s.next()
	}
	return s.slots.do(ctx, slotting{r, "a"})
}

// Release implements guard.Slots.
func (s *Store) Release(ctx context.Context, r guard.SlotRequest) error {
	_, err := s.slots.do(ctx, slotting{r, "r"})
	return err
}

func (s *Store) sendSlots(ctx context.Context, qs []slotting) ([]guard.Slot, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	names, args := make([]string, len(qs)), make([]any, 0, 4*len(qs))
	for i, q := range qs {
		names[i] = s.keys.slots(q.Limit, q.Key)
		args = append(args, q.op, s.name(q.Token), q.Max, q.Lease.Microseconds())
	}
	reply, err := s.run(ctx, scriptSlots, names, args...)
	if err != nil {
		return nil, err
	}
	n, err := numbers(reply, 2, len(qs))
	if err != nil {
		return nil, err
	}
	out := make([]guard.Slot, len(qs))
	for i, q := range qs {
		out[i] = guard.Slot{Held: n[2*i] == 1, Token: q.Token, Leased: true, After: micros(n[2*i+1])}
	}
	return out, nil
}

// marking is one request for a mark.
type marking struct {
	guard.MarkRequest
	op string
}

// Begin implements guard.Marks.
func (s *Store) Begin(ctx context.Context, r guard.MarkRequest) (guard.Mark, error) {
	if r.Token == 0 {
		r.Token = s.next()
	}
	return s.marks.do(ctx, marking{r, "b"})
}

// Complete implements guard.Marks.
func (s *Store) Complete(ctx context.Context, r guard.MarkRequest) error {
	_, err := s.marks.do(ctx, marking{r, "c"})
	return err
}

// Abort implements guard.Marks.
func (s *Store) Abort(ctx context.Context, r guard.MarkRequest) error {
	_, err := s.marks.do(ctx, marking{r, "a"})
	return err
}

func (s *Store) sendMarks(ctx context.Context, qs []marking) ([]guard.Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	names, args := make([]string, len(qs)), make([]any, 0, 3*len(qs))
	for i, q := range qs {
		lasts := q.Lease
		if q.op == "c" {
			lasts = q.Window
		}
		names[i] = s.keys.mark(q.Name, q.ID)
		args = append(args, q.op, s.name(q.Token), lasts.Microseconds())
	}
	reply, err := s.run(ctx, scriptMarks, names, args...)
	if err != nil {
		return nil, err
	}
	n, err := numbers(reply, 2, len(qs))
	if err != nil {
		return nil, err
	}
	out := make([]guard.Mark, len(qs))
	for i, q := range qs {
		out[i] = guard.Mark{Ours: n[2*i] == 1, Done: n[2*i] == 2, Token: q.Token, Leased: true, After: micros(max(n[2*i+1], 0))}
	}
	return out, nil
}

package redis

import (
	"context"

	"github.com/ferrymq/ferry/guard/store"
)

// slotting is one request for a slot.
type slotting struct {
	store.SlotRequest
	op string
}

// Acquire implements store.Slots. Slots are leases: those of a process that died are free when they end.
func (s *Store) Acquire(ctx context.Context, r store.SlotRequest) (store.Slot, error) {
	if r.Token == 0 {
		r.Token = s.next()
	}
	return s.slots.do(ctx, slotting{r, "a"})
}

// Release implements store.Slots.
func (s *Store) Release(ctx context.Context, r store.SlotRequest) error {
	_, err := s.slots.do(ctx, slotting{r, "r"})
	return err
}

func (s *Store) sendSlots(ctx context.Context, qs []slotting) ([]store.Slot, error) {
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
	out := make([]store.Slot, len(qs))
	for i, q := range qs {
		out[i] = store.Slot{Held: n[2*i] == 1, Token: q.Token, Leased: true, After: micros(n[2*i+1])}
	}
	return out, nil
}

// marking is one request for a mark.
type marking struct {
	store.MarkRequest
	op string
}

// Begin implements store.Marks.
func (s *Store) Begin(ctx context.Context, r store.MarkRequest) (store.Mark, error) {
	if r.Token == 0 {
		r.Token = s.next()
	}
	return s.marks.do(ctx, marking{r, "b"})
}

// Complete implements store.Marks.
func (s *Store) Complete(ctx context.Context, r store.MarkRequest) error {
	_, err := s.marks.do(ctx, marking{r, "c"})
	return err
}

// Abort implements store.Marks.
func (s *Store) Abort(ctx context.Context, r store.MarkRequest) error {
	_, err := s.marks.do(ctx, marking{r, "a"})
	return err
}

func (s *Store) sendMarks(ctx context.Context, qs []marking) ([]store.Mark, error) {
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
	out := make([]store.Mark, len(qs))
	for i, q := range qs {
		out[i] = store.Mark{Ours: n[2*i] == 1, Done: n[2*i] == 2, Token: q.Token, Leased: true,
			After: micros(max(n[2*i+1], 0))}
	}
	return out, nil
}

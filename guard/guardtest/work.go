package guardtest

import (
	"time"

	"github.com/ferrymq/ferry/guard/store"
)

func (s *suite) acquire(key string, token uint64, lease time.Duration) store.Slot {
	s.Helper()
	slot, err := s.store.Acquire(s.ctx, store.SlotRequest{Limit: "work", Key: key, Max: 2, Token: token, Lease: lease})
	s.must(err)
	return slot
}

func (s *suite) release(key string, token uint64) {
	s.Helper()
	s.must(s.store.Release(s.ctx, store.SlotRequest{Limit: "work", Key: key, Max: 2, Token: token}))
}

func slotsBounded(s *suite) {
	a, b := s.acquire("k", 0, time.Hour), s.acquire("k", 0, time.Hour)
	if !a.Held || !b.Held || a.Token == b.Token || a.Token == 0 {
		s.Fatalf("%+v and %+v, want two slots", a, b)
	}
	if c := s.acquire("k", 0, time.Hour); c.Held {
		s.Fatalf("%+v, want none left", c)
	}
	if again := s.acquire("k", a.Token, time.Hour); !again.Held || again.Token != a.Token {
		s.Fatalf("%+v, want the slot renewed", again)
	}
	if other := s.acquire("other", 0, time.Hour); !other.Held {
		s.Fatalf("%+v, want a slot of another key", other)
	}
	s.release("k", a.Token)
	if c := s.acquire("k", 0, time.Hour); !c.Held {
		s.Fatalf("%+v, want the slot that was freed", c)
	}
}

func staleRelease(s *suite) {
	a := s.acquire("k", 0, time.Hour)
	s.release("k", a.Token)
	b, c := s.acquire("k", 0, time.Hour), s.acquire("k", 0, time.Hour)
	s.release("k", a.Token)
	if d := s.acquire("k", 0, time.Hour); !b.Held || !c.Held || d.Held {
		s.Fatalf("a release of a slot that was freed already freed another: %+v", d)
	}
}

func slotsExpire(s *suite) {
	if !s.Leased {
		s.Skip("slots end with the process")
	}
	a, b := s.acquire("k", 0, 3*s.unit), s.acquire("k", 0, time.Hour)
	s.pass(4 * s.unit)
	c := s.acquire("k", 0, time.Hour)
	if !c.Held || !b.Held {
		s.Fatalf("%+v, want the slot whose lease ended", c)
	}
	if lost := s.acquire("k", a.Token, time.Hour); lost.Held {
		s.Fatalf("%+v, want the renewal refused: another has the slot", lost)
	}
	s.release("k", c.Token)
	if back := s.acquire("k", a.Token, time.Hour); !back.Held {
		s.Fatalf("%+v, want a free slot instead of the one that was lost", back)
	}
}

func (s *suite) begin(id string, token uint64, lease time.Duration) store.Mark {
	s.Helper()
	m, err := s.store.Begin(s.ctx, store.MarkRequest{Name: "dedup", ID: id, Token: token, Lease: lease})
	s.must(err)
	return m
}

func doneOnce(s *suite) {
	a := s.begin("x", 0, time.Hour)
	if !a.Ours || a.Done {
		s.Fatalf("%+v, want the work to be ours", a)
	}
	if b := s.begin("x", 0, time.Hour); b.Ours || b.Done {
		s.Fatalf("%+v, want another at it", b)
	}
	if again := s.begin("x", a.Token, time.Hour); !again.Ours {
		s.Fatalf("%+v, want it renewed", again)
	}
	s.must(s.store.Abort(s.ctx, store.MarkRequest{Name: "dedup", ID: "x", Token: a.Token}))
	b := s.begin("x", 0, time.Hour)
	if !b.Ours {
		s.Fatalf("%+v, want what was given up", b)
	}
	s.must(s.store.Complete(s.ctx, store.MarkRequest{Name: "dedup", ID: "x", Token: b.Token, Window: time.Hour}))
	if c := s.begin("x", 0, time.Hour); !c.Done {
		s.Fatalf("%+v, want done", c)
	}
	if c := s.begin("y", 0, time.Hour); !c.Ours {
		s.Fatalf("%+v, want another id to be ours", c)
	}
}

func staleAbort(s *suite) {
	a := s.begin("x", 0, time.Hour)
	s.must(s.store.Abort(s.ctx, store.MarkRequest{Name: "dedup", ID: "x", Token: a.Token}))
	b := s.begin("x", 0, time.Hour)
	s.must(s.store.Abort(s.ctx, store.MarkRequest{Name: "dedup", ID: "x", Token: a.Token}))
	if c := s.begin("x", 0, time.Hour); !b.Ours || c.Ours {
		s.Fatalf("%+v: a late abort freed the work of another", c)
	}
	s.must(s.store.Complete(s.ctx, store.MarkRequest{Name: "dedup", ID: "x", Token: b.Token, Window: time.Hour}))
	s.must(s.store.Abort(s.ctx, store.MarkRequest{Name: "dedup", ID: "x", Token: b.Token}))
	if c := s.begin("x", 0, time.Hour); !c.Done {
		s.Fatalf("%+v: a late abort undid what was done", c)
	}
}

func marksEnd(s *suite) {
	a := s.begin("x", 0, time.Hour)
	s.must(s.store.Complete(s.ctx, store.MarkRequest{Name: "dedup", ID: "x", Token: a.Token, Window: 2 * s.unit}))
	s.pass(3 * s.unit)
	if b := s.begin("x", 0, 2*s.unit); !b.Ours {
		s.Fatalf("%+v, want the mark forgotten", b)
	}
	if !s.Leased {
		return
	}
	s.pass(3 * s.unit)
	if c := s.begin("x", 0, time.Hour); !c.Ours {
		s.Fatalf("%+v, want the work of the dead to be free", c)
	}
}

package redisshell_test

import (
	"errors"
	"testing"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisshell"
)

func announced(news <-chan struct{}) bool {
	select {
	case <-news:
		return true
	default:
		return false
	}
}

// TestGateRoom: what is held and what is under way count together.
func TestGateRoom(t *testing.T) {
	t.Parallel()
	g := redisshell.NewGate(10)
	for _, c := range []struct{ reserve, want, held, room int }{
		{0, 4, 0, 4},
		{0, 20, 0, 10},
		{0, 20, 7, 3},
		{2, 20, 7, 1},
		{1, 20, 7, 0},
		{0, 20, 9, 0}, // a lease that ended by our clock may have been counted twice: room is never negative
	} {
		g.Reserve(c.reserve)
		if room := g.Room(c.want, c.held); room != c.room {
			t.Errorf("%+v: room for %d", c, room)
		}
	}
	g.Free(3)
	if left := g.Left(7); left != 3 {
		t.Errorf("room for %d after all claims have ended, want 3", left)
	}
}

// TestGateStarved: who found no room is told once that there may be some.
func TestGateStarved(t *testing.T) {
	t.Parallel()
	g := redisshell.NewGate(1)
	if g.Room(1, 0); g.Fed() {
		t.Error("somebody found no room where there was some")
	}
	if g.Room(1, 1); !g.Fed() || g.Fed() {
		t.Error("somebody found no room, which is to be told once")
	}
}

// TestGateEmptied: after a claim that left nothing, nothing is claimed before something is announced or returns.
func TestGateEmptied(t *testing.T) {
	t.Parallel()
	g := redisshell.NewGate(1)
	steps := []struct {
		name string
		do   func()
		room int
	}{
		{"at first", func() {}, 1},
		{"a claim left nothing", func() { g.Emptied(g.News()) }, 0},
		{"something is announced", g.Announce, 1},
		{"a claim left nothing again", func() { g.Emptied(g.News()) }, 0},
		{"something returns", g.Refilled, 1},
		{"a claim left nothing, and meanwhile something was announced",
			func() { sent := g.News(); g.Announce(); g.Emptied(sent) }, 1},
	}
	for _, s := range steps {
		s.do()
		if room := g.Room(1, 0); room != s.room {
			t.Errorf("%s: room for %d, want %d", s.name, room, s.room)
		}
	}
}

// TestGateEnds: a drained subscription settles, a closed one does not, and both wake who waits.
func TestGateEnds(t *testing.T) {
	t.Parallel()
	g := redisshell.NewGate(1)
	if g.Refuse() != nil || g.RefuseSettle() != nil || !g.Receives() || g.Closed() {
		t.Error("a new one refuses")
	}
	for _, end := range []struct {
		name    string
		end     func() bool
		settles bool
	}{{"drained", g.Drain, true}, {"closed", g.Close, false}} {
		news := g.News()
		if !end.end() || end.end() || !announced(news) {
			t.Errorf("%s: it ends once, and tells", end.name)
		}
		if !errors.Is(g.Refuse(), driver.ErrClosed) || g.Receives() || (g.RefuseSettle() == nil) != end.settles ||
			g.Closed() == end.settles {
			t.Errorf("%s: receives with %v, settles with %v", end.name, g.Refuse(), g.RefuseSettle())
		}
	}
	if err := g.RefuseSettle(); !errors.Is(err, driver.ErrClosed) || !errors.Is(err, driver.ErrLeaseLost) {
		t.Errorf("settling: %v", err)
	}
	if g.Drain() {
		t.Error("a closed one is drained anew")
	}
}

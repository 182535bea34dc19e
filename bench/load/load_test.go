package load

import (
	"context"
	"strings"
	"testing"
	"time"
)

func filled(b *Bodies, seq uint64) []byte {
	buf := make([]byte, b.Size())
	b.Fill(buf, seq, time.Time{})
	return buf
}

func TestBodiesComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	b := NewBodies(1024, 7)
	stamp := time.Now().Add(time.Second)
	buf := make([]byte, 1024)
	b.Fill(buf, 42, stamp)
	if seq, at := b.Look(buf); seq != 42 || !at.Equal(stamp) {
		t.Fatalf("looks like %d, %v; want 42, %v", seq, at, stamp)
	}
	if seq, ok := b.Check(buf); seq != 42 || !ok {
		t.Fatalf("checked as %d, %v; want 42, true", seq, ok)
	}
	for _, i := range []int{0, 16, 500, 1023} {
		spoilt := append([]byte(nil), buf...)
		spoilt[i] ^= 1
		if seq, ok := b.Check(spoilt); ok && seq == 42 {
			t.Errorf("a flipped bit at %d was not seen", i)
		}
	}
	if _, ok := b.Check(buf[:1000]); ok {
		t.Error("a shortened body was accepted")
	}
}

func TestBodiesDiffer(t *testing.T) {
	t.Parallel()
	b := NewBodies(128, 7)
	seen := map[string]bool{}
	for seq := range uint64(1000) {
		seen[string(filled(b, seq)[headerSize:])] = true
	}
	if len(seen) < 950 { // a few may share a place in the arena
		t.Errorf("1000 bodies have only %d different fillings", len(seen))
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	b := NewBodies(64, 1)
	foreign := NewBodies(64, 2)
	tests := []struct {
		name string
		play func(l *Ledger)
		want Verdict
	}{
		{"all came back", func(l *Ledger) {
			for p := range 2 {
				for i := range 3 {
					l.Note(filled(b, l.Seq(p, i)))
				}
			}
		}, Verdict{Published: 6}},
		{"one lost, one repeated", func(l *Ledger) {
			for _, i := range []int{0, 1, 1} {
				l.Note(filled(b, l.Seq(0, i)))
			}
			for i := range 3 {
				l.Note(filled(b, l.Seq(1, i)))
			}
		}, Verdict{Published: 6, Lost: 1, Repeated: 1}},
		{"never published, and foreign bytes", func(l *Ledger) {
			for p := range 2 {
				for i := range 3 {
					l.Note(filled(b, l.Seq(p, i)))
				}
			}
			l.Note(filled(b, l.Seq(1, 7)))
			l.Note(filled(foreign, l.Seq(0, 0)))
			l.Note(filled(b, 1<<40))
		}, Verdict{Published: 6, Corrupt: 3}},
	}
	for _, tt := range tests {
		l := NewLedger(b, 2, 10)
		l.Published(0, 3)
		l.Published(1, 3)
		tt.play(l)
		if got := l.Verdict(); got != tt.want {
			t.Errorf("%s: verdict %+v, want %+v", tt.name, got, tt.want)
		}
		if (l.Verdict().Err() == nil) != (tt.want == Verdict{Published: 6}) {
			t.Errorf("%s: error %v", tt.name, l.Verdict().Err())
		}
	}
}

// TestAPartialVerdict: what did not come back in a part is unchecked, what came back wrong stays wrong.
func TestAPartialVerdict(t *testing.T) {
	t.Parallel()
	got := Verdict{Published: 6, Lost: 3, Repeated: 1, Corrupt: 2}.Partial()
	if want := (Verdict{Published: 6, Unchecked: 3, Repeated: 1, Corrupt: 2}); got != want || got.Err() == nil {
		t.Errorf("%+v (%v), want %+v and an error", got, got.Err(), want)
	}
	if err := (Verdict{Published: 6, Lost: 3}.Partial()).Err(); err != nil {
		t.Errorf("a part that came back right is an error: %v", err)
	}
}

func TestWaitSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := NewBodies(64, 1)
	l := NewLedger(b, 1, 10)
	l.Note(filled(b, 0))
	if err := l.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Wait(ctx, 3); err == nil || !strings.Contains(err.Error(), "1 of 3") {
		t.Errorf("got %v, want a hint at 1 of 3", err)
	}
}

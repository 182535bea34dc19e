package codectest_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/codectest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// greedy is a codec that believes a length, and counts what it is given.
type greedy struct {
	codec.Codec
	seen map[string]bool
}

var kept []byte

func (g greedy) Unmarshal(_ context.Context, _ string, data []byte, _ any) error {
	g.seen[string(data)] = true
	kept = make([]byte, 8<<20)
	return nil
}

// failures counts errors instead of failing.
type failures struct {
	testing.TB
	errors int
}

func (f *failures) Errorf(string, ...any) { f.errors++ }

func TestGreedyCodecIsFound(t *testing.T) {
	f := &failures{TB: t}
	g := greedy{seen: map[string]bool{}}
	if err := codectest.Bounded(f, g, []byte("abc"), nil); err != nil || f.errors != 1 {
		t.Errorf("error %v, %d failures", err, f.errors)
	}
	if err := codectest.Bounded(t, codec.JSON, []byte(`{"a":[1,2,3]}`), new(any)); err != nil {
		t.Error(err)
	}
}

func TestMangledTriesEveryByte(t *testing.T) {
	g := greedy{seen: map[string]bool{}}
	codectest.Mangled(t, g, []byte("ab"), func() any { return nil })
	for _, want := range []string{"", "a", "\x00b", "a\xff", "\x9eb"} {
		if !g.seen[want] {
			t.Errorf("%q was not tried", want)
		}
	}
	if len(kept) == 0 {
		t.Error("nothing was decoded")
	}
}

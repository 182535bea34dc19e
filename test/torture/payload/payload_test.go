package payload

import (
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBodyDescribesItself(t *testing.T) {
	t.Parallel()
	body := Make(42, 100, rand.New(rand.NewPCG(1, 2)))
	if len(body) < 100 || Seq(body) != 42 {
		t.Fatalf("%d bytes, sequence %d", len(body), Seq(body))
	}
	if again := Make(42, 100, rand.New(rand.NewPCG(1, 2))); Hash(again) != Hash(body) {
		t.Fatal("the same seed, another body")
	}
	body[50] ^= 1
	if again := Make(42, 100, rand.New(rand.NewPCG(1, 2))); Hash(again) == Hash(body) {
		t.Fatal("a flipped bit, the same hash")
	}
	for _, bad := range []string{"", "7", "x|", "|"} {
		if n := Seq([]byte(bad)); n != -1 {
			t.Errorf("%q has sequence %d", bad, n)
		}
	}
}

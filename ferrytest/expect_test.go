package ferrytest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/ferrytest"
)

// Expectations must be able to fail, and say what happened instead.
func TestExpectationsFail(t *testing.T) {
	inAProcessOfItsOwn(t, failing,
		`1 messages were published to "orders", want 5`,
		`0 deliveries of "orders" ended in "ack", want 1; what was settled:`,
		`attempt 3: dead max_attempts (timeout to billing)`,
		`2 deliveries of "orders" ended in "retry", want 9`,
		`0 deliveries of "orders" ended in "drop", want 1`,
		`"orders" has 1 dead letters with reason "max_attempts", want 2`)
}

// inAProcessOfItsOwn runs a test that must fail, and demands that its output contains all of these.
func inAProcessOfItsOwn(t *testing.T, test func(*testing.T), wants ...string) {
	t.Helper()
	const env = "FERRYTEST_FAIL"
	if os.Getenv(env) != "" {
		test(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), env+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("what must fail passed:\n%s", out)
	}
	for _, want := range wants {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}

func failing(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		k.Start(newBilling(k.Broker))
		publish(t, k, Order{ID: 10})
		k.Drain()
		k.ExpectPublished("orders", 5)
		k.ExpectAcked("orders", 1)
		k.ExpectRetried("orders", 9)
		k.ExpectDropped("orders", 1)
		k.ExpectDead("orders", "max_attempts", 2)
	})
}

func TestDrainFailsWhenNobodyConsumes(t *testing.T) {
	inAProcessOfItsOwn(t, func(t *testing.T) {
		ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
			publish(t, k, Order{ID: 1})
			k.Drain()
		})
	}, `1 messages are still not settled`)
}

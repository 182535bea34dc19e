package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var actions = Actions{
	"kill":    {Roles: []string{"consumer", "producer"}, Help: "kill -9"},
	"stop":    {Roles: []string{"consumer", "producer"}, Lasting: true, Help: "SIGSTOP, then SIGCONT"},
	"latency": {Roles: []string{"consumer"}, Lasting: true, Value: "a latency", Help: "delay each answer"},
	"restart": {Roles: []string{"server"}, Help: "kill -9 the server and start it again"},
	"flush":   {Help: "forget all scripts"},
}

var count = map[string]int{"consumer": 3, "producer": 2, "server": 1}

func TestPlan(t *testing.T) {
	t.Parallel()
	clauses, err := Parse(`
		# comments and empty lines are fine
		at 2s kill consumer 1; every 5s stop producer all for 2s
		every 4s from 1s until 6s latency consumer 2 with 200ms for 1s
		at 3s restart server 1; at 9s flush`, actions)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := Plan(clauses, 12*time.Second, 1, count)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		got = append(got, s.String())
	}
	want := []string{
		"at 1s latency consumer [2] with 200ms for 1s",
		"at 2s kill consumer [1]",
		"at 3s restart server [1]",
		"at 5s stop producer [1 2] for 2s",
		"at 5s latency consumer [2] with 200ms for 1s",
		"at 9s flush",
		"at 10s stop producer [1 2] for 2s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
}

func TestSeedDecides(t *testing.T) {
	t.Parallel()
	plan := func(seed uint64) []Step {
		clauses, err := Parse("every 10ms-500ms kill consumer any", actions)
		if err != nil {
			t.Fatal(err)
		}
		steps, err := Plan(clauses, time.Minute, seed, count)
		if err != nil {
			t.Fatal(err)
		}
		return steps
	}
	if diff := cmp.Diff(plan(1), plan(1)); diff != "" {
		t.Fatalf("the same seed, another plan:\n%s", diff)
	}
	if cmp.Equal(plan(1), plan(2)) {
		t.Fatal("another seed, the same plan")
	}
	victims := map[int]bool{}
	for _, s := range plan(1) {
		victims[s.Victims[0]] = true
	}
	if len(victims) != 3 {
		t.Fatalf("any chose only %v of 3", victims)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"kill consumer 1":                      `begin with "at" or "every"`,
		"at soon kill consumer 1":              "needs a duration",
		"every 0s kill consumer 1":             `"every" needs a duration`,
		"every 3s-1s kill consumer 1":          "no range",
		"at 1s explode consumer 1":             "unknown action",
		"at 1s failover":                       "restart server N|any|all", // the list of what exists
		"at 1s kill server 1":                  "One of consumer, producer",
		"at 1s kill consumer":                  "which consumer",
		"at 1s kill consumer 0":                "which consumer",
		"at 1s stop consumer 1":                `needs "for"`,
		"at 1s kill consumer 1 for 2s":         "over at once",
		"at 1s latency consumer 1 for 2s":      `needs "with" and a latency`,
		"at 1s kill consumer 1 with 3":         `takes no "with"`,
		"at 1s kill consumer 1 again":          `what is "again"`,
		"every 1s from 5s until 4s flush":      "over at 4s before",
		"at 1s kill consumer 1; at 1s unknown": "unknown action",
	} {
		if _, err := Parse(text, actions); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want it to say %q", text, err, says)
		}
	}
	clauses, err := Parse("at 1s kill consumer 9", actions)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Plan(clauses, time.Minute, 1, count); err == nil || !strings.Contains(err.Error(), "there are 3") {
		t.Errorf("a ninth consumer: %v", err)
	}
}

package run_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/bench/plan"
	"github.com/ferrymq/ferry/bench/run"
	"github.com/ferrymq/ferry/bench/scenario"
	"github.com/ferrymq/ferry/bench/system"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// named is a system with a name and perhaps without keys.
type named struct{ name, lacks string }

func (n named) Info() system.Info { return system.Info{Name: n.name} }
func (n named) Lacks(f system.Feature) string {
	if f == system.Keys {
		return n.lacks
	}
	return ""
}
func (named) Open(context.Context, system.Options) (system.Session, error) { return nil, nil }

func example() plan.Plan {
	return plan.Plan{
		Broker: "test", Ours: named{name: "ours"}, Peers: []system.System{named{"peer", "no keys here"}},
		Limit: named{"limit", "none"},
		Scenarios: []scenario.Scenario{
			{Name: "flow"},
			{Name: "load", LoadFrom: "flow"},
			{Name: "keyed", Needs: []system.Feature{system.Keys}},
			{Name: "mine", OursOnly: true},
			{Name: "long", FullOnly: true, OursOnly: true},
		},
	}
}

func TestSystemsTakeTurns(t *testing.T) {
	t.Parallel()
	var order []string
	size := scenario.Quick()
	size.Rounds = 2
	rounds, skipped := run.Plan(context.Background(), example(), size,
		func(_ context.Context, j run.Job) (scenario.Result, error) {
			order = append(order, j.Scenario+" "+j.System)
			return scenario.Result{Values: map[string]float64{"rate": 100}}, nil
		}, func(run.Round) {})
	want := []string{
		"flow ours", "flow peer", "flow limit", "load ours", "load peer", "load limit", "keyed ours", "mine ours",
		"flow peer", "flow limit", "flow ours", "load peer", "load limit", "load ours", "keyed ours", "mine ours",
	}
	if !slices.Equal(order, want) {
		t.Errorf("order %q\nwant  %q", order, want)
	}
	if len(rounds) != len(want) {
		t.Errorf("%d rounds kept of %d", len(rounds), len(want))
	}
	if len(skipped) != 2 || skipped[0] != (run.Skipped{Scenario: "keyed", System: "peer", Reason: "no keys here"}) {
		t.Errorf("skipped %+v", skipped)
	}
}

// foreign takes its measurements itself, of one scenario.
type foreign struct{ named }

func (foreign) Answers(name string) string {
	if name == "flow" {
		return ""
	}
	return "not in my language"
}
func (foreign) Measure(_ context.Context, name string, _ scenario.Env) (scenario.Result, error) {
	return scenario.Result{Messages: len(name)}, nil
}

func TestVariantsAndForeignSystemsAreAskedWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	p := example()
	p.Peers = []system.System{foreign{named{name: "foreign"}}}
	p.Variants = []plan.Variant{{System: named{name: "variant"}, Scenarios: []string{"mine"}}}
	size := scenario.Quick()
	size.Rounds = 1
	asked := map[string][]string{}
	_, skipped := run.Plan(context.Background(), p, size, func(_ context.Context, j run.Job) (scenario.Result, error) {
		asked[j.System] = append(asked[j.System], j.Scenario)
		return scenario.Result{}, nil
	}, func(run.Round) {})
	if !slices.Equal(asked["variant"], []string{"mine"}) || !slices.Equal(asked["foreign"], []string{"flow"}) {
		t.Errorf("asked %v", asked)
	}
	if !slices.Contains(skipped, run.Skipped{Scenario: "load", System: "foreign", Reason: "not in my language"}) {
		t.Errorf("skipped %+v", skipped)
	}
	if res, err := run.Here(t.Context(), p, size, run.Job{Scenario: "flow", System: "foreign"}); err != nil ||
		res.Messages != 4 {
		t.Errorf("the foreign system was not asked itself: %+v, %v", res, err)
	}
}

func TestWhatIsAskedOnceIsAskedInTheFirstRound(t *testing.T) {
	t.Parallel()
	p := example()
	p.Scenarios = []scenario.Scenario{{Name: "flow"}, {Name: "size", Once: true}}
	size := scenario.Full()
	asked := map[string][]int{}
	run.Plan(context.Background(), p, size, func(_ context.Context, j run.Job) (scenario.Result, error) {
		if j.System == "ours" {
			asked[j.Scenario] = append(asked[j.Scenario], j.Round)
		}
		return scenario.Result{}, nil
	}, func(run.Round) {})
	if len(asked["flow"]) != size.Rounds || !slices.Equal(asked["size"], []int{1}) {
		t.Errorf("asked in rounds %v", asked)
	}
}

// TestOnlyPeersAreSampledAndOnlyLater: what ours published is checked to the end in every round.
func TestOnlyPeersAreSampledAndOnlyLater(t *testing.T) {
	t.Parallel()
	p := example()
	var sampled bool
	p.Scenarios[0].Run = func(_ context.Context, env scenario.Env, _ system.System) (scenario.Result, error) {
		sampled = env.Sampled
		return scenario.Result{}, nil
	}
	for _, tt := range []struct {
		system string
		round  int
		want   bool
	}{{"ours", 1, false}, {"ours", 2, false}, {"limit", 2, false}, {"peer", 1, false}, {"peer", 2, true}} {
		j := run.Job{Scenario: "flow", System: tt.system, Round: tt.round}
		if _, err := run.Here(t.Context(), p, scenario.Tiny(), j); err != nil || sampled != tt.want {
			t.Errorf("%s in round %d: sampled %v, %v; want %v", tt.system, tt.round, sampled, err, tt.want)
		}
	}
}

func TestAnOpenLoopIsLoadedWithHalfThePeak(t *testing.T) {
	t.Parallel()
	size := scenario.Full()
	size.Rounds = 1
	peaks := map[string]float64{"ours": 1000, "peer": 10, "limit": 0}
	rounds, _ := run.Plan(context.Background(), example(), size,
		func(_ context.Context, j run.Job) (scenario.Result, error) {
			if j.System == "peer" && j.Scenario == "flow" {
				return scenario.Result{Values: map[string]float64{"rate": 99}}, errors.New("it lost messages")
			}
			return scenario.Result{Values: map[string]float64{"rate": peaks[j.System]}}, nil
		}, func(run.Round) {})
	for _, r := range rounds {
		want := map[string]float64{"ours": 500}[r.System] // a peak of a failed run is none
		if r.Scenario == "load" && r.Rate != want {
			t.Errorf("%s is loaded with %v, want %v", r.System, r.Rate, want)
		}
		if r.Scenario == "flow" && r.System == "peer" && r.Error != "it lost messages" {
			t.Errorf("the failure of the peer was kept as %q", r.Error)
		}
	}
	if !slices.ContainsFunc(rounds, func(r run.Round) bool { return r.Scenario == "long" }) {
		t.Error("a full run leaves out what is for full runs")
	}
}

func TestAnInterruptEndsTheRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	run.Plan(ctx, example(), scenario.Quick(), func(context.Context, run.Job) (scenario.Result, error) {
		n++
		cancel()
		return scenario.Result{}, nil
	}, func(run.Round) {})
	if n != 1 {
		t.Errorf("%d measurements were taken after the interrupt", n-1)
	}
}

// TestAPeerIsLeftWithWhatIsNotChecked: a later round of publishing ends while a peer still has messages, which must
// neither hold up its end nor count as lost.
func TestAPeerIsLeftWithWhatIsNotChecked(t *testing.T) {
	t.Parallel()
	for _, p := range plan.Brokers() {
		if p.Broker == "kafka" || p.Broker == "gateway" {
			continue // see TestEverySystem
		}
		for _, peer := range p.Peers {
			t.Run(p.Broker+"/"+peer.Info().Name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				size := scenario.Tiny()
				size.Run = time.Millisecond // and as much time to drain
				j := run.Job{Broker: p.Broker, Scenario: "publish-batch", System: peer.Info().Name, Round: 2}
				if peer.Lacks(system.Batches) != "" {
					j.Scenario = "publish-50"
				}
				if _, ok := peer.(scenario.Foreign); ok {
					t.Skip("it checks everything in every round")
				}
				res, err := run.Here(ctx, p, size, j)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d messages, %d of them unchecked", res.Verdict.Published, res.Verdict.Unchecked)
			})
		}
	}
}

// ways are the scenarios that together publish and consume in every way there is. Peers run no others here: the rest
// differs in numbers only.
var ways = []string{"publish-batch", "publish-async", "drain", "through-single-1KB", "delay", "slow-handlers", "stored",
	"idle"}

// TestEverySystem runs every scenario on ours, and every way to publish and to consume on the others, with a handful of
// messages; each run checks that all came back.
func TestEverySystem(t *testing.T) {
	t.Parallel()
	for _, p := range plan.Brokers() {
		if p.Broker == "kafka" {
			// its server takes longer to start than all of the others take to run; that of the gateway is for a peer alone
			continue
		}
		size := scenario.Tiny()
		for _, s := range p.Scenarios {
			s.OursOnly = s.OursOnly || !slices.Contains(ways, s.Name)
			t.Run(p.Broker+"/"+s.Name, func(t *testing.T) {
				t.Parallel()
				one := p
				one.Scenarios = []scenario.Scenario{s}
				execute := func(ctx context.Context, j run.Job) (scenario.Result, error) {
					ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // a busy machine is no fault of a system
					defer cancel()
					return run.Here(ctx, one, size, j)
				}
				rounds, _ := run.Plan(t.Context(), one, size, execute, func(run.Round) {})
				for _, r := range rounds {
					if r.Error != "" {
						t.Error(r.Error)
					}
					for _, m := range s.Measures {
						if _, ok := r.Values[m.Name]; !ok && !m.Beside && r.Error == "" {
							t.Errorf("%s on %s measured no %s", s.Name, r.System, m.Name)
						}
					}
				}
			})
		}
	}
}

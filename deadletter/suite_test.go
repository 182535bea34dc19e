package deadletter_test

import (
	"testing"
)

// cases is the suite: each runs on every broker, which is empty.
var cases = []struct {
	name string
	run  func(k *kit)
}{
	{"browse goes through everything once", browseGoesThroughEverythingOnce},
	{"browse is bounded and says how far it is", browseIsBounded},
	{"tally counts by everything", tallyCounts},
	{"replay by filter, dry run first", replayByFilter},
	{"replay keeps the order of a key", replayKeepsOrder},
	{"replay edits and patches", replayEdits},
	{"replay to another topic", replayToAnotherTopic},
	{"replay to another group", replayToAnotherGroup},
	{"another death is another letter", anotherDeathIsAnotherLetter},
	{"two replays at once double nothing", twoReplaysAtOnce},
	{"a replay is cancelled and resumed", replayIsResumed},
	{"a replay in parts leaves alone what died again", replayInParts},
	{"remove by filter", removeByFilter},
	{"expire by age, count and bytes", expireByLimits},
	{"export and import", exportAndImport},
	{"a bad line imports nothing", badLineImportsNothing},
	{"filtered letters are opened and closed again", filteredLetters},
	{"parse errors have the same operations", parseErrors},
	{"parse errors are filtered when they are mended", filteredParseErrors},
	{"one recoverer works at a time", oneRecovererWorks},
	{"a new version brings panics back", deployBringsPanicsBack},
}

// TestQueue runs the suite on every broker.
//
// Lesson: L73
func TestQueue(t *testing.T) {
	t.Parallel()
	for _, b := range backends(t) {
		for _, c := range cases {
			t.Run(b.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				broker, plant := b.open(t)
				k := newKit(t, broker)
				k.plant = plant
				c.run(k)
				if !k.planted {
					k.audit()
				}
			})
		}
	}
}

// audit demands that nothing is lost or counted twice.
func (k *kit) audit() {
	k.Helper()
	topics, err := k.d.Topics(k.ctx())
	k.ok(err)
	for _, info := range topics {
		r, err := k.d.Audit(k.ctx(), info.Topic, false)
		k.ok(err)
		if len(r.Problems) > 0 || len(r.Stats.Unbalanced()) > 0 {
			k.Errorf("topic %s: %v %v", info.Topic, r.Problems, r.Stats.Unbalanced())
		}
	}
}

package consumer

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// readAs loads a partition whose last commit names offset 1 as given back and 2 as held, and feeds it three messages.
func readAs(t *testing.T, visit, busy bool, clean string) *partition {
	t.Helper()
	m := bareGroups(time.Minute).newMember(&registry.TopicState{Name: "orders"}, driver.DefaultGroup, driver.Strict)
	m.Visit, m.Busy = visit, busy
	returned, _ := offsets.WriteOffsets(offsets.ReturnedPart, []int64{1}, 100)
	held, _ := offsets.WriteOffsets(offsets.LeasedPart, []int64{2}, 100)
	p := m.newPartition(0, kadm.Offset{LeaderEpoch: -1, Metadata: clean + held + returned})
	p.end, p.running = -1, true
	m.parts[0] = p
	m.mu.Lock()
	defer m.mu.Unlock()
	for off := range int64(3) {
		p.feed(fetched{&kgo.Record{Offset: off}, &Item{Msg: &driver.Message{ID: "a"}, offset: off, order: off}, nil})
	}
	return p
}

// TestSnapshotChangesNothing: what others said with their last commit about deliveries is what a look at the partition
// would commit too, and is not counted a second time; an owner counts what was lost.
func TestSnapshotChangesNothing(t *testing.T) {
	t.Parallel()
	for _, clean := range []string{"", offsets.CleanText} {
		for _, watched := range []bool{false, true} {
			p := readAs(t, true, watched, clean)
			again := offsets.NewSet(0)
			again.ReadMetadata(p.metadata())
			if again.Clean != (clean != "") || len(again.Before) != 2 ||
				again.Before[offsets.Location{Offset: 1}] != offsets.ReturnedPart ||
				again.Before[offsets.Location{Offset: 2}] != offsets.LeasedPart {
				t.Errorf("clean %q, watched %v: it would commit %v, clean %v", clean, watched, again.Before, again.Clean)
			}
			if p.tally.Redelivered != 0 || len(p.m.suspects) != 0 {
				t.Errorf("clean %q, watched %v: it counts %d as lost, and would store %d", clean, watched, p.tally.Redelivered,
					len(p.m.suspects))
			}
			held, returned := p.items.of(2, ""), p.items.of(1, "")
			if recalled := held.cause != driver.CauseFirst && returned.cause == driver.CauseReleased; recalled == watched {
				t.Errorf("clean %q, watched %v: the causes are %v and %v", clean, watched, held.cause, returned.cause)
			}
		}
	}
	if p := readAs(t, false, false, ""); p.tally.Redelivered != 1 || len(p.m.suspects) != 1 {
		t.Errorf("an owner counts %d as lost, and stores %d, want one", p.tally.Redelivered, len(p.m.suspects))
	}
	if p := readAs(t, false, false, offsets.CleanText); p.tally.Redelivered != 0 ||
		p.items.of(2, "").cause != driver.CauseRebalance {
		t.Errorf("what was left in order counts as lost: %d", p.tally.Redelivered)
	}
}

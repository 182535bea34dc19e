package consumer

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// TestStandInIsSeldom: as long as commits are accepted, or refused for a moment, nothing is written; then what has
// changed, once in the time between two commits. The next commit ends it.
func TestStandInIsSeldom(t *testing.T) {
	t.Parallel()
	m, p := owning(kadm.Offset{At: 5, LeaderEpoch: -1})
	now := time.Now()
	for i, step := range []struct {
		after time.Duration
		done  int64 // settled before the commit; 0: nothing
		want  string
	}{
		{0, 6, ""},
		{cluster.CommitEvery - time.Millisecond, 7, ""},
		{time.Millisecond, 0, "written"},
		{cluster.CommitEvery - time.Millisecond, 8, ""},
		{time.Millisecond, 0, "written"},
		{cluster.CommitEvery, 0, ""},
		{-1, 0, "ended"}, // accepted
		{-1, 0, ""},
		{time.Hour, 9, ""}, // refused for the first time since
	} {
		if step.done > 0 {
			p.done.Set(step.done)
		}
		if now = now.Add(step.after); step.after < 0 {
			p.accepted(p.done.Base, "m")
		} else {
			p.refused(now)
		}
		got := ""
		for _, r := range m.ends {
			if got = "ended"; r.Value != nil {
				got = "written"
			}
		}
		if got != step.want || len(m.ends) > 1 {
			t.Errorf("step %d: %d records, %q, want %q", i, len(m.ends), got, step.want)
		}
		m.ends = nil
	}
	m.sure = time.Time{}
	if p.refused(now.Add(2 * time.Hour)); len(m.ends) > 0 {
		t.Error("whoever may not be the owner writes a stand-in")
	}
}

// TestStandInAddsToItsCommit: a stand-in counts for the next owner as long as nothing else was committed and nobody has
// owned the partition since, who would have written it again.
func TestStandInAddsToItsCommit(t *testing.T) {
	t.Parallel()
	at := kadm.Offset{At: 5, LeaderEpoch: -1, Metadata: "NAgEAAAcAAAAAAAAA;"}
	_, dead := owning(at)
	dead.tally.Acked = 7
	for _, off := range []int64{5, 6, 8} {
		dead.done.Set(off)
	}
	announced := func(epoch int64) *kgo.Record {
		return loggedAs("retry", 0, epochKey, []byte{'e'}, record.State{Epoch: epoch, Offset: -1})
	}
	again := func(epoch int64) *kgo.Record {
		dead.epoch = epoch
		return dead.standInNow()
	}
	for name, x := range map[string]struct {
		at     kadm.Offset
		log    []*kgo.Record
		counts bool
	}{
		"its commit is the last": {at, []*kgo.Record{announced(1), again(1)}, true},
		"another was accepted":   {kadm.Offset{At: 7, LeaderEpoch: -1}, []*kgo.Record{announced(1), again(1)}, false},
		"a reset to the same place": {kadm.Offset{At: 5, LeaderEpoch: -1, Metadata: "R9;C;"},
			[]*kgo.Record{announced(1), again(1)}, false},
		"it has ended": {at, []*kgo.Record{announced(1), again(1),
			loggedAs("retry", 0, standInKey, nil, record.State{Epoch: 1, Offset: -1})}, false},
		"another owner since":              {at, []*kgo.Record{announced(1), again(1), announced(2)}, false},
		"another owner, who has read it":   {at, []*kgo.Record{announced(1), again(1), announced(2), again(2)}, true},
		"an older owner":                   {at, []*kgo.Record{announced(2), again(1)}, false},
		"its owner announced itself again": {at, []*kgo.Record{announced(1), again(1), announced(1)}, true},
	} {
		m, _ := owning(at)
		p := m.newPartition(0, x.at)
		for i, r := range x.log {
			r.Offset = int64(i)
			p.logChanged(r)
		}
		if err := p.addStandIn(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.mu.Lock()
		rs := p.takeOver(p.begin(20))
		if got := p.done.Has(8) && p.done.Base == 7; got != x.counts && x.at.At == at.At {
			t.Errorf("%s: it counts: %v, want %v", name, got, x.counts)
		}
		if acked := p.tally.Acked == 7; acked != x.counts {
			t.Errorf("%s: %d acks are counted", name, p.tally.Acked)
		}
		if p.done.Has(7) && x.at.At == at.At || p.done.Next != x.at.At {
			t.Errorf("%s: more is done than it says, or will not be read", name)
		}
		var newest *kgo.Record
		for _, r := range rs {
			if string(r.Key) == standInKey {
				newest = r
			}
		}
		if newest != nil && (newest.Value != nil) != x.counts || newest == nil && x.counts {
			t.Errorf("%s: the next owner writes %v", name, newest)
		}
		m.mu.Unlock()
	}
}

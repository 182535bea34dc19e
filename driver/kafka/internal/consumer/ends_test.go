package consumer

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/delay"
	"github.com/ferrymq/ferry/driver/kafka/internal/publisher"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// bareGroups are not connected to anything.
func bareGroups(session time.Duration) *Groups {
	c := &cluster.Cluster{Settings: cluster.Settings{Session: session}}
	r := registry.New(c, nil)
	w := delay.New(c, nil, r)
	return New(c, nil, r, w, publisher.New(c, r, w))
}

// ownedItem is an item of a partition that is owned, as far as memory goes: it is in the retry log, and its place in
// the main topic is committed.
func ownedItem(t *testing.T) (*member, *Item) {
	t.Helper()
	m := bareGroups(0).newMember(&registry.TopicState{Name: "orders"}, driver.DefaultGroup, driver.Strict)
	p := m.newPartition(0, kadm.Offset{LeaderEpoch: -1})
	m.parts[0] = p
	it := &Item{p: p, offset: 3, logKey: "m/3", Msg: &driver.Message{ID: "a", Topic: "orders", Key: "k"}}
	p.items.put(it)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(it)
	p.hasPassed(10)
	return m, it
}

// TestSavedWhileItsPartitionGoes: a record of an item comes in when its partition is about to go. It is the newest
// there is: it must not be ended.
func TestSavedWhileItsPartitionGoes(t *testing.T) {
	t.Parallel()
	m, it := ownedItem(t)
	m.mu.Lock()
	m.stopOffering([]int32{0})
	m.mu.Unlock()
	m.saver.stored(saving{it: it, r: &kgo.Record{Key: []byte("m/3"), Offset: 7}}, nil)
	if len(m.ends) > 0 {
		t.Errorf("its record is ended with %q, and it is nowhere else", m.ends[0].Key)
	}
	if it.logOffset != 7 {
		t.Errorf("its record is said to be at %d", it.logOffset)
	}
}

// TestEndsAreMarks: what ends in the retry log before its place in the main topic is committed leaves a mark; a
// tombstone follows the commit.
func TestEndsAreMarks(t *testing.T) {
	t.Parallel()
	m, it := ownedItem(t)
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.endOf(it); r.Value != nil {
		t.Errorf("what is committed ends with %q", r.Value)
	}
	late := &Item{p: it.p, offset: 12, logKey: "m/12", Msg: it.Msg}
	it.p.items.put(late)
	m.add(late)
	r := m.endOf(late)
	s, ok := record.StateOf(r)
	if !ok || r.Value == nil || !s.Done || s.Offset != 12 {
		t.Errorf("what is not committed ends with %q, %+v", r.Value, s)
	}
	m.remove(late)
	if it.p.hasPassed(12); len(m.ends) != 0 {
		t.Errorf("a commit that has not passed it brings %d tombstones", len(m.ends))
	}
	if it.p.hasPassed(13); len(m.ends) != 1 || string(m.ends[0].Key) != "m/12" || m.ends[0].Value != nil {
		t.Errorf("a commit that has passed it brings %v", m.ends)
	}

	next := m.newPartition(0, kadm.Offset{LeaderEpoch: -1, At: 5})
	next.found["m/12"], next.found["m/4"] = r, &kgo.Record{Key: []byte("m/4"), Value: r.Value,
		Headers: []kgo.RecordHeader{record.State{Offset: 4, Done: true}.Header()}}
	found := next.begin(20)
	if !next.done.Has(12) || next.items.of(12, "") != nil {
		t.Error("the next owner takes what is marked for unfinished")
	}
	var tombs, kept int
	for _, r := range next.takeOver(found) {
		switch {
		case string(r.Key) == "m/4" && r.Value == nil:
			tombs++
		case string(r.Key) == "m/12":
			kept++
		}
	}
	if tombs != 1 || kept != 0 {
		t.Errorf("the next owner ends %d marks that were passed, and writes %d again that were not", tombs, kept)
	}
}

package consumer

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// owning is a member that owns a partition, as far as memory goes, from a commit on.
func owning(at kadm.Offset) (*member, *partition) {
	m := bareGroups(time.Minute).newMember(&registry.TopicState{Name: "orders"}, driver.DefaultGroup, driver.Strict)
	m.sure = time.Now().Add(time.Hour)
	p := m.newPartition(0, at)
	p.epoch, p.running = 1, true
	m.parts[0] = p
	return m, p
}

// TestReadsOn: a partition that was loaded, and whose assignment was broken off then, is fetched from where it reads
// on, also when more was committed meanwhile: otherwise it waits for what is never fetched.
func TestReadsOn(t *testing.T) {
	t.Parallel()
	m, p := owning(kadm.Offset{At: 5, LeaderEpoch: -1})
	p.done.Set(5) // it had ended in the retry log
	offsets := map[int32]kgo.Offset{0: kgo.NewOffset().At(6), 1: kgo.NewOffset().At(9)}
	m.goBack(offsets)
	if at := offsets[0].EpochOffset().Offset; at != 5 {
		t.Errorf("it is fetched from %d, and reads on at 5", at)
	}
	if at := offsets[1].EpochOffset().Offset; at != 9 {
		t.Errorf("another is fetched from %d", at)
	}
}

// TestGoneBeforeLoaded: nobody waits for a partition any more that went before it was loaded.
func TestGoneBeforeLoaded(t *testing.T) {
	t.Parallel()
	m, _ := owning(kadm.Offset{At: 5, LeaderEpoch: -1})
	m.coming[1] = true
	m.drop([]int32{1})
	if len(m.coming) > 0 {
		t.Errorf("it is still to come: %v", m.coming)
	}
}

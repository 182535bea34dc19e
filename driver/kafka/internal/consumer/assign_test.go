package consumer

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

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

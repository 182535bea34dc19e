package delay

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
)

// TestDelaysOfALapsedOwner: a process that was stopped, and is no member any more of those who fire, does not fire what
// it still has.
func TestDelaysOfALapsedOwner(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	w := &firer{d: &Delays{cluster: &cluster.Cluster{Settings: cluster.Settings{Session: 6 * time.Second}, Client: cl}},
		cl: cl, parts: map[int32]*tierPartition{0: {}}, ring: cluster.NewSignal(), look: cluster.NewSignal()}
	w.ID, w.Generation = "expelled", 1
	w.heard = time.Now().Add(-6 * time.Second)
	if wait := w.round(t.Context()); w.firing != nil || wait <= 0 {
		t.Errorf("it begins a round, and looks again after %v", wait)
	}
	w.heard = time.Now()
	if !w.vouched(t.Context()) {
		t.Error("an answer of a moment ago is not good enough")
	}
}

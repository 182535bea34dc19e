package kafkatest

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(Main(m)) }

// count returns how many brokers the cluster has, and makes a topic that every one of them holds.
func count(t *testing.T, c *Cluster, topic string) int {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	admin := kadm.NewClient(client)
	brokers, err := admin.ListBrokers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if topic != "" {
		if _, err := admin.CreateTopic(ctx, 1, int16(len(brokers)), nil, topic); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: "kept", Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return len(brokers)
}

func TestSingleSurvivesAKill(t *testing.T) {
	t.Parallel()
	c := Single(t)
	if n := count(t, c, "kept"); n != 1 {
		t.Errorf("%d brokers", n)
	}
	c.Brokers[0].Kill()
	if err := c.Brokers[0].Restart(); err != nil {
		t.Fatal(err)
	}
	count(t, c, "")
}

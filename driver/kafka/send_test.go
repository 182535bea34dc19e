package kafka_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/ferrymq/ferry/driver"
)

// TestSendKeepsOrder: batches that are on their way at once, and one of them refused at first, come in the order they were sent.
func TestSendKeepsOrder(t *testing.T) {
	t.Parallel()
	const batches, each = 20, 25
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("first", "k"))
	refuseProduce(c, "orders", kerr.NotLeaderForPartition, 1)
	var waits []func() ([]driver.Receipt, error)
	var sent []*driver.Message
	for b := range batches {
		for i := range each {
			sent = append(sent, message(fmt.Sprintf("m%03d", b*each+i), "k"))
		}
		waits = append(waits, d.Send(t.Context(), sent[b*each:], driver.PublishOptions{}))
	}
	last := driver.Ref{}
	for _, wait := range waits {
		rs, err := wait()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			if r.Ref.Pos <= last.Pos {
				t.Fatalf("%s is at %s, behind %s", r.ID, r.Ref, last)
			}
			last = r.Ref
		}
	}
	for _, m := range sent { // nothing is retained when all have waited
		m.ID, m.Body = "changed", append(m.Body[:0], "changed"...)
	}
	s := subscribe(t, d, "x")
	settle(t, s, receive(t, s), driver.Ack, 0)
	for i := range batches * each {
		x := receive(t, s)
		if want := fmt.Sprintf("m%03d", i); x.ID != want {
			t.Fatalf("received %s, want %s", x.ID, want)
		}
		settle(t, s, x, driver.Ack, 0)
	}
}

package kafka_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/ferrymq/ferry/driver"
)

// TestSendKeepsOrder: batches that are on their way at once, and one of them refused at first, come in the order they
// were sent.
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

// TestBytesAreKeptUntilStored: publishes that share memory one after the other, some of them refused at first and some
// given up by their callers, store what they were given, although the callers change it as soon as the call has
// returned.
func TestBytesAreKeptUntilStored(t *testing.T) {
	t.Parallel()
	const callers, calls, each = 8, 20, 25
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("first", ""))
	refuseProduce(c, "orders", kerr.NotLeaderForPartition, 3)
	stored := make(chan string, callers*calls*each)
	var publishing sync.WaitGroup
	for caller := range callers {
		publishing.Go(func() {
			for call := range calls {
				ctx, cancel := context.WithCancel(t.Context())
				msgs := make([]*driver.Message, each)
				for i := range msgs {
					msgs[i] = message(fmt.Sprintf("m-%d-%d-%d", caller, call, i), "")
					msgs[i].Body = bytes.Repeat([]byte(msgs[i].ID), 50)
				}
				if call%3 == 0 {
					go cancel()
				}
				receipts, _ := d.Publish(ctx, msgs, driver.PublishOptions{})
				cancel()
				for i, r := range receipts {
					clear(msgs[i].Body)
					if r.Err == nil {
						stored <- r.ID
					}
				}
			}
		})
	}
	publishing.Wait()
	close(stored)
	missing := map[string]bool{}
	for id := range stored {
		missing[id] = true
	}
	s := subscribe(t, d, "x")
	for len(missing) > 0 {
		x := receive(t, s)
		if want := bytes.Repeat([]byte(x.ID), 50); x.ID != "first" && !bytes.Equal(x.Body, want) {
			t.Fatalf("message %s has the body %.80q", x.ID, x.Body)
		}
		delete(missing, x.ID)
		settle(t, s, x, driver.Ack, 0)
	}
	page, err := d.Browse(t.Context(), driver.Query{Topic: "orders", State: driver.StateInvalid})
	if err != nil || len(page.Entries) > 0 {
		t.Fatalf("%d messages were damaged; error %v", len(page.Entries), err)
	}
}

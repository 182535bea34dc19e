package ferrytest

import (
	"fmt"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// ExpectPublished fails the test unless exactly n messages were published to the topic, and returns them.
func (k *Kit) ExpectPublished(topic string, n int) []*ferry.Message {
	k.t.Helper()
	got := k.Published(topic)
	if len(got) != n {
		k.t.Errorf("ferrytest: %d messages were published to %q, want %d%s", len(got), topic, n, k.happened(topic))
	}
	return got
}

// ExpectAcked fails the test unless exactly n deliveries of the topic were acknowledged.
func (k *Kit) ExpectAcked(topic string, n int) { k.t.Helper(); k.expect(topic, driver.Ack, n) }

// ExpectRetried fails the test unless exactly n deliveries of the topic failed and were sent to be retried.
func (k *Kit) ExpectRetried(topic string, n int) { k.t.Helper(); k.expect(topic, driver.Retry, n) }

// ExpectDropped fails the test unless exactly n deliveries of the topic were dropped.
func (k *Kit) ExpectDropped(topic string, n int) { k.t.Helper(); k.expect(topic, driver.Drop, n) }

// ExpectDead fails the test unless the topic has exactly n dead letters with this reason, and returns them.
func (k *Kit) ExpectDead(topic string, reason ferry.Reason, n int) []*ferry.DeadLetter {
	k.t.Helper()
	var got []*ferry.DeadLetter
	for _, dl := range k.DeadLetters(topic) {
		if dl.Reason == reason {
			got = append(got, dl)
		}
	}
	if len(got) != n {
		k.t.Errorf("ferrytest: %q has %d dead letters with reason %q, want %d%s", topic, len(got), reason,
			n, k.happened(topic))
	}
	return got
}

func (k *Kit) expect(topic string, o driver.Outcome, n int) {
	k.t.Helper()
	got := 0
	for _, s := range k.Settled(topic) {
		if s.Outcome == o {
			got++
		}
	}
	if got != n {
		k.t.Errorf("ferrytest: %d deliveries of %q ended in %q, want %d%s", got, topic, o, n, k.happened(topic))
	}
}

// happened tells the story of a topic, so that a failed expectation explains itself.
func (k *Kit) happened(topic string) string {
	const most = 20
	var b strings.Builder
	for i, s := range k.Settled(topic) {
		if i == most {
			b.WriteString("\n\t...")
			break
		}
		fmt.Fprintf(&b, "\n\t%s attempt %d: %s", s.Delivery.ID, s.Delivery.Attempt, s.Outcome)
		if f := s.Failure; f != nil {
			fmt.Fprintf(&b, " %s (%s)", f.Reason, f.Error)
		}
	}
	if b.Len() == 0 {
		return "; nothing was settled"
	}
	return "; what was settled:" + b.String()
}

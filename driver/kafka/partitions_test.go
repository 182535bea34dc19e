package kafka_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// TestPartitionsStay: their number is not lowered by us, and where somebody else has done it the group is refused, with
// the command that mends it.
func TestPartitionsStay(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	if err := d.EnsureTopic(t.Context(), "orders", driver.TopicConfig{Partitions: 4}); err != nil {
		t.Fatal(err)
	}
	hinted(t, d.EnsureTopic(t.Context(), "orders", driver.TopicConfig{Partitions: 2}), driver.ErrConflict)
	hinted(t, d.AlterTopic(t.Context(), "orders", driver.TopicConfig{Partitions: 2}), driver.ErrUnsupported)
	publish(t, d, message("a", "k"))
	a, name := admin(t, c), d.Namespace()+"orders"
	if _, err := a.DeleteTopics(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		resp, err := a.CreateTopics(t.Context(), 2, 1, nil, name)
		if err == nil && resp[name].Err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v, %v", resp[name].Err, err)
		}
	}
	other := again(t, d, c.ListenAddrs())
	_, err := other.Subscribe(t.Context(), driver.SubscribeOptions{Topic: "orders", Instance: "x"})
	hinted(t, err, driver.ErrConflict)
	command := fmt.Sprintf("--alter --topic %s --partitions 4", name)
	if !strings.Contains(err.Error(), command) {
		t.Errorf("%v does not say how to mend it", err)
	}
	fs, err := other.Diagnose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		if f.Severity == driver.SeverityError && strings.Contains(f.Hint, command) {
			return
		}
	}
	t.Errorf("the doctor says nothing: %+v", fs)
}

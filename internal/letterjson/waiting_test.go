package letterjson

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ferrymq/ferry/driver"
)

// TestWaiting: a message that waits outside of a broker comes back whole, with what is left of its times.
func TestWaiting(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct{ change, want func(m *driver.Message) }{
		"plain": {func(*driver.Message) {}, func(*driver.Message) {}},
		"delay": {func(m *driver.Message) { m.Delay = time.Hour }, func(m *driver.Message) {
			m.Delay, m.At = 0, now.Add(time.Hour)
		}},
		"delay over": {func(m *driver.Message) { m.Delay = time.Minute }, func(m *driver.Message) { m.Delay = 0 }},
		"at":         {func(m *driver.Message) { m.At = now.Add(time.Hour) }, func(*driver.Message) {}},
		"hold":       {func(m *driver.Message) { m.Delay = driver.Hold }, func(*driver.Message) {}},
		"ttl":        {func(m *driver.Message) { m.TTL = time.Hour }, func(m *driver.Message) { m.TTL = 50 * time.Minute }},
		"ttl over":   {func(m *driver.Message) { m.TTL = time.Minute }, nil},
	} {
		m := &driver.Message{ID: "1", OwnID: true, Topic: "orders", Key: "k", Body: []byte{0xff, 1},
			Headers: map[string]string{"h": "\xff"}, Priority: driver.High}
		c.change(m)
		line, err := Waiting(m, now).Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		got, alive, err := r.Due(now.Add(10 * time.Minute))
		if err != nil || alive != (c.want != nil) {
			t.Errorf("%s: %t, %v", name, alive, err)
		}
		if c.want == nil {
			continue
		}
		c.want(m)
		if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, _, err := (Record{Topic: "orders"}).Due(now); err == nil {
		t.Error("a record without an id was read")
	}
}

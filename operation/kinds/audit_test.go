package kinds_test

import (
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/operation"
	"github.com/ferrymq/ferry/operation/kinds"
)

// TestAudit: it looks at every message, and finds nothing wrong where nothing is.
func TestAudit(t *testing.T) {
	t.Parallel()
	b, err := memory.Open(t.Context(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(t.Context()) }()
	r := newRig(t, b)
	for range 3 {
		_, err := ferry.Publish(t.Context(), b, topic, "x")
		r.ok(err)
	}
	p, err := r.q.Do(t.Context(), kinds.Audit{Topic: topic, Fix: true}.Request())
	if err != nil || p.Done != 3 || p.Scanned != 3 || p.Skipped != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := r.q.Submit(t.Context(), operation.Request{Kind: kinds.TopicAudit, Args: kinds.Audit{}}); err == nil {
		t.Error("an audit of no topic was submitted")
	}
}

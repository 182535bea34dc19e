package gateway_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// One key, another body each time, all at once: one of them is stored, and the others are told that they are repeats
// of it.
func TestSameIdempotencyKeyAtOnce(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *testing.T, c client, _ driver.Driver) {
		var all sync.WaitGroup
		var mu sync.Mutex
		var stored []string
		for i := range 20 {
			all.Go(func() {
				body := strconv.Itoa(i)
				status, got := c.post("/v1/topics/jobs/messages", body, "Idempotency-Key", "order-1")
				mu.Lock()
				defer mu.Unlock()
				switch {
				case status == http.StatusCreated && got["duplicate"] == nil:
					stored = append(stored, body)
				case status != http.StatusOK || got["duplicate"] != true || got["id"] != "order-1":
					t.Errorf("%s: got %d %v", body, status, got)
				}
			})
		}
		all.Wait()
		got := c.receive(`{"max": 10, "wait": "0s"}`)
		if len(stored) != 1 || len(got) != 1 || got[0]["body"] != stored[0] {
			t.Errorf("stored %v, received %v", stored, got)
		}
	})
}

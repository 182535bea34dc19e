package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// healthBucket has what became of the latest posts, by the name of the subscription: the gateway that posts writes it,
// and each may be asked.
const healthBucket = driver.PushBucket + ".health"

// healthEvery is how often it is written while nothing changes but times.
const healthEvery = 5 * time.Second

// health is how the endpoint of a push subscription has answered lately.
type health struct {
	State         string         `json:"state" enum:"ok,failing" doc:"failing: the latest post was not accepted"`
	Failures      int            `json:"failures" doc:"Posts in a row that were not accepted"`
	LastSuccessAt *jsontime.Time `json:"last_success_at,omitempty"`
	LastError     string         `json:"last_error,omitempty"`
	LastErrorAt   *jsontime.Time `json:"last_error_at,omitempty"`
}

// States of an endpoint.
const (
	healthOK      = "ok"
	healthFailing = "failing"
)

// after returns the health after one more post.
func (h health) after(err error, now time.Time) health {
	if err == nil {
		h.State, h.Failures, h.LastSuccessAt = healthOK, 0, jsontime.At(now)
		return h
	}
	h.State, h.LastError, h.LastErrorAt = healthFailing, err.Error(), jsontime.At(now)
	h.Failures++
	return h
}

// meter keeps the health of one endpoint while it is posted to.
type meter struct {
	g    *Gateway
	name string

	mu      sync.Mutex
	now     health
	written time.Time
}

// note takes in the outcome of a post. What is not written is not lost for long: the next post writes it.
func (m *meter) note(ctx context.Context, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, before := time.Now(), m.now.State
	if m.now = m.now.after(err, now); m.now.State == before && now.Sub(m.written) < healthEvery {
		return
	}
	m.written = now
	data, _ := json.Marshal(m.now) // texts and numbers
	write := driver.Write{Name: m.name, Data: data}
	if err := m.g.driver.KV().Apply(context.WithoutCancel(ctx), healthBucket, driver.KVOptions{},
		write)[0].Err; err != nil {
		m.g.o.Logger.DebugContext(ctx, "ferry: the health of a push endpoint was not written", "name", m.name, "error", err)
	}
}

// readHealth returns the health of endpoints by name: nil for one to which nothing was posted yet.
func (g *Gateway) readHealth(ctx context.Context, names ...string) (map[string]*health, error) {
	out := map[string]*health{}
	if len(names) == 0 {
		return out, nil
	}
	vs, err := g.driver.KV().Get(ctx, healthBucket, names...)
	if err != nil && !errors.Is(err, driver.ErrNotFound) {
		return nil, err
	}
	for i, v := range vs {
		var h health
		if v.Revision > 0 && json.Unmarshal(v.Data, &h) == nil {
			out[names[i]] = &h
		}
	}
	return out, nil
}

package server

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/monitor"
)

const (
	healthFor     = 5 * time.Second // for which a look at the broker is good: probes are free
	healthTimeout = 3 * time.Second
)

// Health is what /healthz answers. Without credentials it is Status and Uptime alone.
type Health struct {
	Status        monitor.Status `json:"status"`
	QueueSize     *int64         `json:"queue_size,omitempty"`
	Workers       *int           `json:"workers,omitempty"`
	LastProcessed *time.Time     `json:"last_processed,omitempty"` // as far as this server has seen
	Errors        []string       `json:"errors,omitempty"`
	Uptime        string         `json:"uptime"`
}

// health looks at the broker, not more often than it is worth.
type health struct {
	monitor  *monitor.Monitor
	problems func(ctx context.Context) []string // nil: none
	begin    time.Time

	mu        sync.Mutex // guards what follows, not a look
	looking   chan struct{}
	at        time.Time
	last      Health
	acked     uint64
	processed time.Time
}

// now returns the health, at most healthFor old. Who comes while somebody looks waits for that look.
func (h *health) now(ctx context.Context) Health {
	for {
		last, fresh, looking, mine := h.fresh()
		switch {
		case fresh:
			return last
		case mine:
			h.look(context.WithoutCancel(ctx)) // others wait for it
			close(looking)
			continue
		}
		select {
		case <-looking:
		case <-ctx.Done():
			return Health{Status: monitor.Unhealthy}
		}
	}
}

// fresh returns the last look if it is good. If not it returns the look to wait for, which may be up to the caller.
func (h *health) fresh() (last Health, fresh bool, looking chan struct{}, mine bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at.IsZero() && time.Since(h.at) < healthFor {
		return h.last, true, nil, false
	}
	if h.looking != nil {
		return Health{}, false, h.looking, false
	}
	h.looking = make(chan struct{})
	return Health{}, false, h.looking, true
}

func (h *health) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	shot := h.monitor.Look(ctx)
	var problems []string
	if h.problems != nil {
		problems = h.problems(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looking, h.at = nil, time.Now()
	h.last = h.judge(shot)
	h.last.Errors = append(h.last.Errors, problems...)
	if len(problems) > 0 && h.last.Status == monitor.Healthy {
		h.last.Status = monitor.Degraded
	}
}

// judge makes the answer of what a look saw.
func (h *health) judge(shot monitor.Snapshot) Health {
	out := Health{Status: shot.Health.Status, QueueSize: new(int64), Workers: new(int)}
	var acked uint64
	for _, q := range shot.Queues {
		*out.QueueSize += q.Ready + q.Waiting + q.Delayed
		*out.Workers += q.Consumers
		acked += q.Acked
	}
	if h.acked != 0 && acked > h.acked {
		h.processed = shot.At
	}
	h.acked = acked
	if !h.processed.IsZero() {
		at := h.processed.UTC()
		out.LastProcessed = &at
	}
	for _, reason := range shot.Health.Reasons {
		out.Errors = append(out.Errors, reason.String())
	}
	return out
}

// livez says that the process serves.
func livez(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, Health{Status: monitor.Healthy})
}

// readyz says whether requests should come here: not while it stops, and not without the broker.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	if s.stopping.Load() || s.reachable(ctx) != nil {
		s.answerHealth(w, http.StatusServiceUnavailable, Health{Status: monitor.Unhealthy})
		return
	}
	s.answerHealth(w, http.StatusOK, Health{Status: monitor.Healthy})
}

// reachable reads a value, which every broker answers from the backend or from a log that it follows.
func (s *Server) reachable(ctx context.Context) error {
	_, err := s.o.Broker.Driver().KV().Get(ctx, "members", "readyz")
	return err
}

// healthz says how the broker is; the reasons only to who may view everything, because they name topics.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	h := s.health.now(r.Context())
	if !auth.From(r.Context()).May(auth.View, "") {
		h = Health{Status: h.Status}
	}
	status := http.StatusOK
	if h.Status == monitor.Unhealthy || s.stopping.Load() {
		status = http.StatusServiceUnavailable
	}
	s.answerHealth(w, status, h)
}

func (s *Server) answerHealth(w http.ResponseWriter, status int, h Health) {
	h.Uptime = time.Since(s.health.begin).Round(time.Second).String()
	writeJSON(w, status, h)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // who has gone is not told
}

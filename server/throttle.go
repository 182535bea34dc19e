package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// mostThrottled is how many clients a throttle tells apart; beyond it the rest are one.
const mostThrottled = 10_000

// throttle bounds how often each client does something.
type throttle struct {
	mu      sync.Mutex
	clients map[string]*client
	swept   time.Time
}

type client struct {
	limiter *rate.Limiter
	used    time.Time
}

// allow reports whether a client may, and if not, after how long.
func (t *throttle) allow(who string, perSecond float64, burst int) (bool, time.Duration) {
	now := time.Now()
	l := t.limiter(who, now, burst)
	l.SetLimitAt(now, rate.Limit(perSecond)) // which a reload may have changed
	l.SetBurstAt(now, burst)
	reservation := l.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait == 0, wait
}

func (t *throttle) limiter(who string, now time.Time, burst int) *rate.Limiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clients == nil {
		t.clients = map[string]*client{}
	}
	t.sweep(now)
	if t.clients[who] == nil && len(t.clients) >= mostThrottled {
		who = ""
	}
	c := t.clients[who]
	if c == nil {
		c = &client{limiter: rate.NewLimiter(0, burst)}
		t.clients[who] = c
	}
	c.used = now
	return c.limiter
}

const throttleFor = 10 * time.Minute // after which a client that came no more is forgotten

// sweep forgets clients that came no more, once a minute.
func (t *throttle) sweep(now time.Time) {
	if now.Sub(t.swept) < time.Minute {
		return
	}
	t.swept = now
	for who, c := range t.clients {
		if now.Sub(c.used) > throttleFor {
			delete(t.clients, who)
		}
	}
}

// tooMany tells a client when to come again.
func tooMany(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
	refuse(w, r, http.StatusTooManyRequests, "too_many_requests", "too many requests",
		"wait as long as Retry-After says, in seconds")
}

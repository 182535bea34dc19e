package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
)

// eventsType is that of server-sent events.
const eventsType = "text/event-stream"

// Times of a stream.
const (
	keepAlive    = 15 * time.Second // after which something is sent, so that neither side takes the other for dead
	writeTimeout = 30 * time.Second // how long a client may not read
)

// serveStream sends deliveries as they come, at most max that are not settled. When it ends, what is held goes back.
func (g *Gateway) serveStream(w http.ResponseWriter, r *http.Request) {
	credit, lease, err := streamOptions(r)
	if err == nil {
		err = mayReceive(r)
	}
	if err != nil {
		refuse(w, r, err)
		return
	}
	o := g.subscription(r, lease)
	o.MaxInflight = credit
	s, err := g.sessions.open(r.Context(), g.driver, auth.From(r.Context()).String(), o)
	if err != nil {
		refuse(w, r, err)
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), closeTimeout)
		defer cancel()
		_ = g.sessions.end(ctx, s) // what it does not give back runs out
	}()
	if !s.busy() {
		refuse(w, r, errStopping())
		return
	}
	defer s.free()
	newStream(w, r).run(r.Context(), g, s, credit)
}

// streamOptions reads max and lease.
func streamOptions(r *http.Request) (credit int, lease time.Duration, err error) {
	credit = defaultMax
	if text := r.URL.Query().Get("max"); text != "" {
		if credit, err = strconv.Atoi(text); err != nil || credit < 1 || credit > mostMax {
			return 0, 0, invalid("max cannot be read", "ask for 1 to 1000", err)
		}
	}
	if text := r.URL.Query().Get("lease"); text != "" {
		if lease, err = time.ParseDuration(text); err != nil {
			return 0, 0, invalid("lease cannot be read", "a duration looks like 30s", err)
		}
	}
	return credit, lease, checkLease(lease)
}

// stream is an answer without an end: lines of JSON, or events of a browser.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	events  bool
	buffer  []byte // of what is written next
}

func newStream(w http.ResponseWriter, r *http.Request) *stream {
	s := &stream{w: w, control: http.NewResponseController(w), events: strings.Contains(r.Header.Get("Accept"),
		eventsType)}
	w.Header().Set("Content-Type", linesType)
	if s.events {
		w.Header().Set("Content-Type", eventsType)
	}
	return s
}

// run sends until the client has gone, stops reading, or the gateway stops.
func (s *stream) run(ctx context.Context, g *Gateway, held *session, credit int) {
	s.w.WriteHeader(http.StatusOK)
	err := s.alive() // so that a client sees at once that the stream stands
	for err == nil {
		waiting, cancel := g.waiting(ctx, keepAlive)
		ds, failed := held.sub.Receive(waiting, credit)
		quiet := failed != nil && waiting.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil || g.life.Err() != nil:
			return // what was claimed goes back with the session
		case quiet:
			err = s.alive()
		case failed != nil:
			s.fail(ctx, failed)
			return
		default:
			err = s.deliver(g.hand(ctx, held, ds))
		}
	}
}

// alive sends nothing, so that a client that has gone is noticed.
func (s *stream) alive() error {
	if s.events {
		return s.write([]byte(":\n\n"))
	}
	return s.write([]byte("\n"))
}

// writeSize is when a write is large enough.
const writeSize = 64 << 10

// deliver sends deliveries, many in one write: clients that read them together settle them together.
func (s *stream) deliver(ds []delivery) error {
	s.buffer = s.buffer[:0]
	for i := range ds {
		s.begin()
		s.buffer = appendDelivery(s.buffer, &ds[i])
		if s.end(); len(s.buffer) < writeSize && i < len(ds)-1 {
			continue
		}
		if err := s.write(s.buffer); err != nil {
			return err
		}
		s.buffer = s.buffer[:0]
	}
	return nil
}

// begin and end are what stands around a value in the stream.
func (s *stream) begin() {
	if s.events {
		s.buffer = append(s.buffer, "data: "...)
	}
}

func (s *stream) end() {
	s.buffer = append(s.buffer, '\n')
	if s.events {
		s.buffer = append(s.buffer, '\n')
	}
}

// fail sends why the stream ends.
func (s *stream) fail(ctx context.Context, err error) {
	if errors.Is(err, driver.ErrClosed) {
		err = errStopping()
	}
	s.buffer = s.buffer[:0]
	s.begin()
	s.buffer = append(s.buffer, `{"error":`...)
	text, _ := json.Marshal(problemOf(ctx, err)) // texts and a number
	s.buffer = append(append(s.buffer, text...), '}')
	s.end()
	_ = s.write(s.buffer) // who has gone is not told
}

// write writes within the time that a client has to read.
func (s *stream) write(data []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // a recorder in a test has none
	if _, err := s.w.Write(data); err != nil {
		return err
	}
	return s.control.Flush()
}

package wecom_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
	"github.com/ferrymq/ferry/worker"
)

// rig is a pipeline between a vendor and a broker.
type rig struct {
	*testing.T
	vendor *wecomtest.Server
	driver *faulty.Driver
	broker *ferry.Broker
	p      *wecom.Pipeline
	url    string // of the callback
}

var (
	errAway = driver.NewError(driver.ErrNotApplied, "the broker is away", "", nil)
	errLost = driver.NewError(driver.ErrUnknown, "the answer was lost", "", nil)
)

// disturb says what becomes of what is written to brokers, and of what is read. They deliver all the same.
func disturb(written, read faulty.Fault, ds ...*faulty.Driver) {
	for _, d := range ds {
		d.Set(faulty.Publish, written)
		d.Set(faulty.Write, written)
		d.Set(faulty.Get, read)
	}
}

// maxBody is what the broker of a rig takes: little, so that too much is quick to make.
const maxBody = 64 << 10

func newRig(t *testing.T, o wecomtest.Options, wo wecom.Options) *rig {
	t.Helper()
	d, err := memory.New(t.Context(), memory.Options{MaxBody: maxBody})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, vendor: wecomtest.Start(o), driver: faulty.New(d)}
	t.Cleanup(r.vendor.Close)
	r.broker, err = ferry.New(r.driver, ferry.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.broker.Close(context.Background()) })
	r.p = r.pipeline(wo)
	r.url = r.serve(r.p.Callback())
	return r
}

// serve serves a handler until the test ends, and returns its URL.
func (r *rig) serve(h http.Handler) string {
	s := httptest.NewServer(h)
	r.Cleanup(s.Close)
	return s.URL
}

// pipeline is one more, as in another process on the same broker.
func (r *rig) pipeline(o wecom.Options) *wecom.Pipeline {
	r.Helper()
	p, err := wecom.New(r.broker, r.vendor.Config(), o)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(p.Close)
	return p
}

func (r *rig) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// handled runs a worker, and returns what it handles.
func (r *rig) handled() <-chan *ferry.Msg[wecom.Message] {
	got := make(chan *ferry.Msg[wecom.Message], 10_000)
	w := worker.New(r.broker, worker.Options{})
	worker.Handle(w, wecom.Topic, func(_ context.Context, m *ferry.Msg[wecom.Message]) error {
		got <- m
		return nil
	})
	runtest.Start(r, w.Run)
	return got
}

// published returns the ids of the messages in the topic, in their order.
func (r *rig) published() []string {
	r.Helper()
	var ids []string
	page, err := r.broker.Driver().Browse(r.Context(), driver.Query{Topic: wecom.Topic, Group: "default",
		State: driver.StateReady, Limit: 1000})
	r.ok(err)
	for _, e := range page.Entries {
		ids = append(ids, e.Message.ID)
	}
	return ids
}

func newBroker(t *testing.T) *ferry.Broker {
	t.Helper()
	b, err := memory.Open(t.Context(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}

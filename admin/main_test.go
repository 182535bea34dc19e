package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const topic = "orders"

// rig is an API on a broker in virtual time, and somebody who asks it.
type rig struct {
	*testing.T
	broker *ferry.Broker
	api    *API
	who    *auth.Identity
}

var boss = &auth.Identity{Name: "ann", Kind: auth.KindUser, Grants: []auth.Grant{{Role: auth.Administrator}}}

// virtual runs a test on a broker in virtual time, which has the topic and its group "default".
func virtual(t *testing.T, o Options, test func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := memory.New(t.Context(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := ferry.New(d, ferry.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = b.Close(context.Background()) }()
		o.Broker, o.Guards, o.Actions = b, guard.NewMemory(guard.MemoryOptions{}), auth.NewActions(b)
		defer func() { _ = o.Guards.Close(context.Background()) }()
		a, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Driver().EnsureGroup(t.Context(), topic, "default", ferry.GroupOptions{}); err != nil {
			t.Fatal(err)
		}
		test(&rig{T: t, broker: b, api: a, who: boss})
	})
}

// as returns the rig with somebody else who asks.
func (r *rig) as(grants ...auth.Grant) *rig {
	other := *r
	other.who = &auth.Identity{Name: "bob", Kind: auth.KindUser, Grants: grants}
	return &other
}

// do asks, and returns the answer.
func (r *rig) do(method, path, contentType string, body io.Reader) *httptest.ResponseRecorder {
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute) // for what streams
	defer cancel()
	q := httptest.NewRequestWithContext(auth.With(ctx, r.who), method, path, body)
	if contentType != "" {
		q.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	r.api.ServeHTTP(w, q)
	return w
}

// ask sends JSON, or nothing, and reads the answer, whose status must be the one that is wanted.
func (r *rig) ask(status int, method, path string, body, answer any) {
	r.Helper()
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			r.Fatal(err)
		}
		content = bytes.NewReader(data)
	}
	w := r.do(method, path, "application/json", content)
	if w.Code != status {
		r.Fatalf("%s %s answered %d, want %d: %s", method, path, w.Code, status, w.Body)
	}
	if answer == nil {
		return
	}
	reflect.ValueOf(answer).Elem().SetZero() // what an answer leaves out is not that of the one before
	if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
		r.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
	}
}

func (r *rig) get(path string, answer any) {
	r.Helper()
	r.ask(http.StatusOK, http.MethodGet, path, nil, answer)
}

// refused asks for what cannot be, and returns the problem.
func (r *rig) refused(status int, method, path string, body any) api.Problem {
	r.Helper()
	var p api.Problem
	r.ask(status, method, path, body, &p)
	if p.Status != status || p.Code == "" || p.Detail == "" || p.RequestID == "" || p.Title == "" {
		r.Errorf("%s %s: the problem is not whole: %+v", method, path, p)
	}
	return p
}

func (r *rig) publish(n int, opts ...ferry.PublishOption) {
	r.Helper()
	for i := range n {
		body := fmt.Sprintf(`{"n":%d,"card":"4111"}`, i)
		if _, err := ferry.Publish(r.Context(), r.broker, topic, json.RawMessage(body), opts...); err != nil {
			r.Fatal(err)
		}
	}
}

// kill makes dead letters of n new messages, and returns their ids.
func (r *rig) kill(n int, reason string) []string {
	r.Helper()
	r.publish(n, ferry.Key("user-"+reason))
	w := worker.New(r.broker, worker.Options{})
	handled := make(chan string, n)
	worker.Handle(w, topic, func(_ context.Context, m *ferry.Msg[json.RawMessage]) error {
		handled <- m.ID
		return worker.Dead(ferry.Reason(reason), fmt.Errorf("failed %s", reason))
	})
	stop := runtest.Start(r, w.Run)
	var ids []string
	for range n {
		ids = append(ids, <-handled)
	}
	time.Sleep(time.Second) // until the last is settled
	stop()
	return ids
}

// run runs what the API does in the background, until the function that it returns is called.
func (r *rig) run() (stop func()) {
	return runtest.Start(r, r.api.Run)
}

// events splits a stream.
func events(body string) []string {
	return strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
}

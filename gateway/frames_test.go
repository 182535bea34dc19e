package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/internal/frame"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newGateway returns a gateway to a broker in memory.
func newGateway(t *testing.T, o gateway.Options) (*gateway.Gateway, *ferry.Broker) {
	t.Helper()
	b, err := memory.Open(t.Context(), memory.Options{Broker: ferry.Options{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(b, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(g.Close(context.Background()), b.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return g, b
}

// token is a program that may do some things with topics that fit patterns.
func token(scopes []auth.Scope, topics ...string) *auth.Identity {
	return &auth.Identity{Kind: auth.KindToken, Name: "test", Scopes: scopes,
		Grants: []auth.Grant{{Role: auth.Administrator, Topics: topics}}}
}

// post sends a body as somebody.
func post(g http.Handler, who *auth.Identity, path, contentType string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r.WithContext(auth.With(r.Context(), who)))
	return w
}

// call makes a call of the seam as somebody, and returns its status and error. Without v its value is not read.
func call(t *testing.T, g http.Handler, who *auth.Identity, name string, q, v frame.Value) (int, error) {
	t.Helper()
	data, err := frame.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	w := post(g, who, "/v1/driver/"+name, frame.ContentType, data)
	a := frame.Answer{Value: v}
	if err := frame.Read(w.Body, frame.Bounds{Most: 1 << 20}, &a); err != nil && v != nil {
		t.Fatalf("%s: the answer is no frame: %v", name, err)
	}
	return w.Code, a.Err
}

// Each call needs its scope on its topic: with all others it is refused, and so is a grant on another topic.
func TestCallsNeedScopes(t *testing.T) {
	g, _ := newGateway(t, gateway.Options{})
	message := &driver.Message{ID: "a", Topic: "jobs"}
	for name, c := range map[string]struct {
		q     frame.Value
		needs []auth.Scope
		all   bool // it belongs to no topic
	}{
		frame.CallPublish: {q: &frame.Publish{Messages: []*driver.Message{message}}, needs: []auth.Scope{auth.Publish}},
		frame.CallSubscribe: {q: &frame.Subscribe{Options: driver.SubscribeOptions{Topic: "jobs", Instance: "i"}},
			needs: []auth.Scope{auth.Consume}},
		frame.CallStats: {q: &frame.Place{Topic: "jobs"}, needs: []auth.Scope{auth.View}},
		frame.CallBrowse: {q: &frame.Query{Topic: "jobs", Group: "g", State: driver.StateReady},
			needs: []auth.Scope{auth.View, auth.Payload}},
		frame.CallGet:         {q: &frame.Target{Topic: "jobs", ID: "a"}, needs: []auth.Scope{auth.View, auth.Payload}},
		frame.CallAudit:       {q: &frame.Place{Topic: "jobs"}, needs: []auth.Scope{auth.View}},
		frame.CallEnsureTopic: {q: &frame.Config{Topic: "jobs"}, needs: []auth.Scope{auth.Operate}},
		frame.CallAlterTopic:  {q: &frame.Config{Topic: "jobs"}, needs: []auth.Scope{auth.Operate}},
		frame.CallDeleteTopic: {q: &frame.Place{Topic: "jobs"}, needs: []auth.Scope{auth.Operate}},
		frame.CallEnsureGroup: {q: &frame.Group{Topic: "jobs", Group: "g"}, needs: []auth.Scope{auth.Operate}},
		frame.CallDeleteGroup: {q: &frame.Place{Topic: "jobs", Group: "g"}, needs: []auth.Scope{auth.Operate}},
		frame.CallPause:       {q: &frame.Place{Topic: "jobs"}, needs: []auth.Scope{auth.Operate}},
		frame.CallPurge:       {q: &frame.Place{Topic: "jobs"}, needs: []auth.Scope{auth.Operate}},
		frame.CallDelete:      {q: &frame.Targets{{Topic: "jobs", ID: "a"}}, needs: []auth.Scope{auth.Operate}},
		frame.CallMove: {q: &frame.Moves{{Target: driver.Target{Topic: "jobs", ID: "a"}}},
			needs: []auth.Scope{auth.Operate}},
		frame.CallReset:    {q: &frame.Reset{Topic: "jobs", Group: "g"}, needs: []auth.Scope{auth.Operate}},
		frame.CallUsage:    {q: &frame.Nothing{}, needs: []auth.Scope{auth.View}, all: true},
		frame.CallDiagnose: {q: &frame.Nothing{}, needs: []auth.Scope{auth.View}, all: true},
		frame.CallKVGet: {q: &frame.Names{Bucket: "mine", Names: []string{"a"}}, needs: []auth.Scope{auth.Operate},
			all: true},
		frame.CallKVList: {q: &frame.KVQuery{Bucket: driver.AuthBucket + ".tokens"}, needs: []auth.Scope{auth.Admin},
			all: true},
		frame.CallKVApply: {q: &frame.Writes{Bucket: driver.WeComBucket, Writes: []driver.Write{{Name: "eve"}}},
			needs: []auth.Scope{auth.Admin}, all: true},
		frame.CallPartitions: {q: &frame.Place{Topic: "jobs"}, needs: []auth.Scope{auth.View}},
		frame.CallRange:      {q: &frame.RangeQuery{Topic: "jobs"}, needs: []auth.Scope{auth.View, auth.Payload}},
		frame.CallTrim:       {q: &frame.Place{Topic: "jobs"}, needs: []auth.Scope{auth.Operate}},
	} {
		for _, missing := range c.needs {
			status, err := call(t, g, token(without(missing)), name, c.q, nil)
			if !errors.Is(err, driver.ErrRefused) || status != http.StatusForbidden {
				t.Errorf("%s without %s: got %d, %v", name, missing, status, err)
			}
		}
		if _, err := call(t, g, token(nil, "other.*"), name, c.q, nil); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s with a grant on other topics: got %v", name, err)
		}
		who := token(c.needs, "jobs")
		if c.all {
			who = token(c.needs)
		}
		if _, err := call(t, g, who, name, c.q, nil); errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s with what it needs: %v", name, err)
		}
	}
}

// Whole messages of a topic that is masked are for who may consume it, and gets them anyway.
func TestMaskedTopics(t *testing.T) {
	g, _ := newGateway(t, gateway.Options{Masked: func(topic string) bool { return topic == "mails" }})
	for name, q := range map[string]func(topic string) frame.Value{
		frame.CallBrowse: func(topic string) frame.Value {
			return &frame.Query{Topic: topic, Group: "g", State: driver.StateReady}
		},
		frame.CallGet:   func(topic string) frame.Value { return &frame.Target{Topic: topic, ID: "a"} },
		frame.CallRange: func(topic string) frame.Value { return &frame.RangeQuery{Topic: topic} },
	} {
		looks, consumes := token([]auth.Scope{auth.View, auth.Payload}),
			token([]auth.Scope{auth.View, auth.Payload, auth.Consume})
		if _, err := call(t, g, looks, name, q("mails"), nil); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s of a masked topic: %v", name, err)
		}
		if _, err := call(t, g, looks, name, q("jobs"), nil); errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s of another topic: %v", name, err)
		}
		if _, err := call(t, g, consumes, name, q("mails"), nil); errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s by a consumer: %v", name, err)
		}
	}
}

// What does not exist is told without the names of topics that who asks may not see.
func TestNamesOfTopicsAreNotTold(t *testing.T) {
	g, b := newGateway(t, gateway.Options{})
	if err := b.Driver().EnsureTopic(t.Context(), "secret", driver.TopicConfig{}); err != nil {
		t.Fatal(err)
	}
	_, err := call(t, g, token(nil, "jobs"), frame.CallStats, &frame.Place{Topic: "jobs"}, nil)
	if !errors.Is(err, driver.ErrNotFound) || strings.Contains(err.Error(), "secret") {
		t.Errorf("somebody with a grant on jobs is told: %v", err)
	}
	_, err = call(t, g, token(nil), frame.CallStats, &frame.Place{Topic: "jobs"}, nil)
	if !strings.Contains(err.Error(), "existing topics: secret") {
		t.Errorf("who may see everything is told: %v", err)
	}
}

func without(missing auth.Scope) []auth.Scope {
	var rest []auth.Scope
	for _, s := range auth.Scopes() {
		if s != missing {
			rest = append(rest, s)
		}
	}
	return rest
}

// A follow-up is a publish: who may only consume does not emit into another topic.
func TestEmitNeedsPublish(t *testing.T) {
	g, _ := newGateway(t, gateway.Options{})
	emit := driver.Settlement{Emit: []*driver.Message{{ID: "b", Topic: "secret"}}}
	_, err := call(t, g, token([]auth.Scope{auth.Consume}, "jobs"), frame.CallSettle,
		&frame.Settle{Handles: []uint64{1}, Settlements: []driver.Settlement{emit}}, nil)
	if !errors.Is(err, driver.ErrRefused) {
		t.Errorf("got %v, want ErrRefused", err)
	}
}

// A session is of who opened it.
func TestSessionsAreNotShared(t *testing.T) {
	g, _ := newGateway(t, gateway.Options{})
	mine, other := token(nil), token(nil)
	other.Name = "other"
	var s frame.Session
	if _, err := call(t, g, mine, frame.CallSubscribe,
		&frame.Subscribe{Options: driver.SubscribeOptions{Topic: "jobs", Instance: "i"}}, &s); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, g, other, frame.CallReceive, &frame.Receive{Session: s.ID, Number: 1, Max: 1},
		nil); !errors.Is(err, frame.ErrNoSession) {
		t.Errorf("Receive by another: got %v, want ErrNoSession", err)
	}
	if _, err := call(t, g, mine, frame.CallDrain, &s, &frame.Nothing{}); err != nil {
		t.Errorf("Drain by its owner: %v", err)
	}
}

// Bad input is refused with the kind and the status that it is.
func TestBadCalls(t *testing.T) {
	g, _ := newGateway(t, gateway.Options{MaxFrame: 1 << 10})
	good, err := frame.Marshal(&frame.Place{Topic: "jobs"})
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(good)
	other[0]++
	big := []byte{frame.Version, 0, 1, 0, 0}
	for name, c := range map[string]struct {
		path, contentType string
		body              []byte
		who               *auth.Identity
		status            int
	}{
		"nobody":            {"stats", frame.ContentType, good, nil, http.StatusForbidden},
		"another call":      {"dance", frame.ContentType, good, token(nil), http.StatusNotImplemented},
		"no frame":          {"stats", "application/json", []byte("{}"), token(nil), http.StatusBadRequest},
		"nothing":           {"stats", frame.ContentType, nil, token(nil), http.StatusBadRequest},
		"half a frame":      {"stats", frame.ContentType, good[:len(good)-2], token(nil), http.StatusBadRequest},
		"another version":   {"stats", frame.ContentType, other, token(nil), http.StatusBadRequest},
		"a frame too large": {"stats", frame.ContentType, big, token(nil), http.StatusRequestEntityTooLarge},
		"a topic not there": {"stats", frame.ContentType, good, token(nil), http.StatusNotFound},
		"rubbish for a frame": {"publish", frame.ContentType, append([]byte{frame.Version, 0, 0, 0, 3}, 9, 9, 9), token(nil),
			http.StatusBadRequest},
	} {
		w := post(g, c.who, "/v1/driver/"+c.path, c.contentType, c.body)
		if w.Code != c.status {
			t.Errorf("%s: got status %d, want %d", name, w.Code, c.status)
		}
		var a frame.Answer
		var whole *driver.Error
		if err := frame.Read(w.Body, frame.Bounds{Most: 1 << 20}, &a); err != nil || !errors.As(a.Err, &whole) ||
			whole.Hint == "" {
			t.Errorf("%s: the answer is %v, %v, want an error with a hint", name, a.Err, err)
		}
	}
}

package client_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/client"
)

// elsewhere are routes without a method: a driver has what they do, that of ferry:// for example, or a package over
// one.
var elsewhere = map[string]bool{
	"broker.show": true, "broker.diagnose": true,
	"topic.list": true, "topic.show": true, "topic.put": true, "topic.delete": true, "topic.pause": true,
	"topic.resume": true, "topic.balance": true,
	"topic.partitions": true, "topic.retention": true, "topic.retain": true, "topic.trim": true,
	"group.show": true, "group.put": true, "group.delete": true, "group.pause": true, "group.resume": true,
	"group.replay": true, "group.pending": true,
	"message.list": true, "message.publish": true, "message.show": true, "message.cancel": true,
	"message.reschedule": true,
	// Packages result, deadletter and transaction.
	"message.result": true, "letter.list": true, "letter.tally": true, "letter.export": true, "letter.import": true,
	"letter.show":       true,
	"letter.replay-one": true, "letter.remove-one": true, "transaction.list": true, "transaction.commit": true,
	"transaction.rollback": true,
}

// TestEveryRouteHasAMethod calls every method, and compares what is asked with the document of the API.
func TestEveryRouteHasAMethod(t *testing.T) {
	t.Parallel()
	asked := &routes{asked: map[string]bool{}}
	known := asked.serve(t)
	s := httptest.NewServer(&asked.mux)
	defer s.Close()
	c, err := client.New(client.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(c)
	for i := range v.NumMethod() {
		if name := v.Type().Method(i).Name; name != "Request" {
			call(t, name, v.Method(i))
		}
	}
	for id := range known {
		switch {
		case elsewhere[id] && asked.asked[id]:
			t.Errorf("%s has a method: take it out of the list", id)
		case !elsewhere[id] && !asked.asked[id] && !strings.HasPrefix(id, "classic."):
			t.Errorf("%s has no method", id)
		}
	}
	for id := range elsewhere {
		if !known[id] {
			t.Errorf("%s is no route any more", id)
		}
	}
}

// routes answers every route of the document, and notes which were asked.
type routes struct {
	mux   http.ServeMux
	mu    sync.Mutex
	asked map[string]bool
}

func (r *routes) serve(t *testing.T) (known map[string]bool) {
	t.Helper()
	text, err := os.ReadFile("../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	known = map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			known[op.ID] = true
			r.mux.HandleFunc(strings.ToUpper(method)+" "+path, func(w http.ResponseWriter, _ *http.Request) {
				r.mu.Lock()
				r.asked[op.ID] = true
				r.mu.Unlock()
				_, _ = w.Write([]byte(`{"ended":"2026-01-01T00:00:00Z"}`)) // so that who waits for an end has it
			})
		}
	}
	r.mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) {
		t.Errorf("%s %s is no route", q.Method, q.URL)
		w.WriteHeader(http.StatusNotFound)
	})
	return known
}

// call calls a method with something for each argument.
func call(t *testing.T, name string, method reflect.Value) {
	t.Helper()
	args := []reflect.Value{reflect.ValueOf(t.Context())}
	for i := 1; i < method.Type().NumIn(); i++ {
		arg := reflect.New(method.Type().In(i)).Elem()
		if arg.Kind() == reflect.String {
			arg.SetString("x")
		}
		args = append(args, arg)
	}
	out := method.Call(args)
	if err, _ := out[len(out)-1].Interface().(error); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestTail: messages come while they are published, and the caller ends it.
func TestTail(t *testing.T) {
	t.Parallel()
	c, _ := serve(t)
	seen, watching := errors.New("seen"), make(chan error, 1)
	go func() {
		watching <- c.Tail(t.Context(), "orders", func(api.Message) error { return seen },
			func(api.Skipped) error { return nil })
	}()
	for { // again and again, since nobody knows when the stream begins
		if err := c.Request(t.Context(), http.MethodPost, "/topics/orders/messages", nil, api.NewMessage{}, nil); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-watching:
			if !errors.Is(err, seen) {
				t.Errorf("the tail ended with %v", err)
			}
			if err := c.Tail(t.Context(), "none", nil, nil); !errors.Is(err, ferry.ErrNotFound) {
				t.Errorf("the tail of a topic that is not there: %v", err)
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

package registry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const text = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}`

var schema = registry.Schema{Type: "AVRO", Text: text}

// fake is a registry of franz-go that counts what it is asked.
type fake struct {
	*srfake.Registry
	asked atomic.Int64
}

func newFake(t testing.TB, opts ...srfake.Option) *fake {
	t.Helper()
	f := &fake{Registry: srfake.New(opts...)}
	f.Intercept(func(http.ResponseWriter, *http.Request) bool { f.asked.Add(1); return false })
	t.Cleanup(f.Close)
	return f
}

func (f *fake) client(t testing.TB, o registry.Options) *registry.Registry {
	t.Helper()
	o.URLs, o.Timeout = []string{f.URL()}, time.Minute // however slow the machine is
	r, err := registry.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestIDsAndSchemas(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	reading, writing := f.client(t, registry.Options{}), f.client(t, registry.Options{Register: true})
	if _, err := reading.ID(t.Context(), "orders-value", schema); !errors.Is(err, registry.ErrNotFound) ||
		errors.Is(err, codec.ErrUnavailable) {
		t.Errorf("a schema that nobody registered: error %v", err)
	}
	id, err := writing.ID(t.Context(), "orders-value", schema)
	if err != nil {
		t.Fatal(err)
	}
	other := f.client(t, registry.Options{})
	if same, err := other.ID(t.Context(), "orders-value", schema); err != nil || same != id {
		t.Errorf("id %d, error %v, want %d", same, err, id)
	}
	if got, err := other.Schema(t.Context(), id); err != nil || got.Text != text || got.Type != "AVRO" {
		t.Errorf("schema %+v, error %v", got, err)
	}
	if _, err := other.Schema(t.Context(), id+1); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("an unknown id: error %v", err)
	}
	asked := f.asked.Load()
	for range 10 {
		_, _ = other.ID(t.Context(), "orders-value", schema)
		_, _ = other.Schema(t.Context(), id)
	}
	if more := f.asked.Load() - asked; more != 0 {
		t.Errorf("%d questions for what is known", more)
	}
}

// An answer without an id or a schema, of a proxy for example, says nothing about them: it is not kept, and nothing is
// written with it.
func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{`{}`, `null`, `{"id":0}`, `{"id":-1}`, `{"id":4294967297}`, `<html>`} {
		f := newFake(t)
		f.Intercept(func(w http.ResponseWriter, _ *http.Request) bool { _, _ = io.WriteString(w, answer); return true })
		for _, register := range []bool{false, true} {
			if id, err := f.client(t, registry.Options{Register: register}).ID(t.Context(), "orders-value",
				schema); !errors.Is(err, codec.ErrUnavailable) {
				t.Errorf("%s: id %d, error %v", answer, id, err)
			}
		}
		if s, err := f.client(t, registry.Options{}).Schema(t.Context(), 1); !errors.Is(err, codec.ErrUnavailable) {
			t.Errorf("%s: %+v, error %v", answer, s, err)
		}
		if _, err := f.client(t, registry.Options{}).Referenced(t.Context(),
			registry.Reference{Subject: "s", Version: 1}); !errors.Is(err, codec.ErrUnavailable) {
			t.Errorf("%s: error %v", answer, err)
		}
	}
}

func TestVersionsAndLevels(t *testing.T) {
	t.Parallel()
	f := newFake(t, srfake.WithGlobalCompat(sr.CompatFull))
	r := f.client(t, registry.Options{})
	if got, err := r.Versions(t.Context(), "orders-value", false); err != nil || len(got) != 0 {
		t.Errorf("versions %v of a subject that is not there, error %v", got, err)
	}
	if got, err := r.Level(t.Context(), "orders-value"); err != nil || got != registry.Full {
		t.Errorf("level %q, error %v", got, err)
	}
	for _, s := range []string{`"int"`, `"long"`} {
		if _, _, err := f.RegisterSchema("orders-value", sr.Schema{Schema: s}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.SetCompat("orders-value", sr.CompatForwardTransitive); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Level(t.Context(), "orders-value"); err != nil ||
		got != registry.ForwardTransitive || !got.Transitive() {
		t.Errorf("level %q, error %v", got, err)
	}
	all, err := r.Versions(t.Context(), "orders-value", false)
	if err != nil || len(all) != 2 || all[0].Schema.Text != `"int"` || all[1].Number != 2 {
		t.Errorf("versions %+v, error %v", all, err)
	}
	asked := f.asked.Load() // each version is a question of its own, asked once
	if again, err := r.Versions(t.Context(), "orders-value", false); err != nil || len(again) != 2 ||
		f.asked.Load() != asked+1 {
		t.Errorf("%d questions, versions %+v, error %v", f.asked.Load()-asked, again, err)
	}
	if newest, err := r.Versions(t.Context(), "orders-value", true); err != nil || len(newest) != 1 ||
		newest[0].Schema.Text != `"long"` {
		t.Errorf("newest %+v, error %v", newest, err)
	}
}

func TestVerdictOfTheRegistry(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := f.client(t, registry.Options{})
	if err := r.Compatible(t.Context(), "orders-value", schema, registry.Backward); err != nil {
		t.Error(err)
	}
	var path atomic.Value
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		path.Store(r.URL.Path)
		_, _ = io.WriteString(w, `{"is_compatible":false,"messages":["READER_FIELD_MISSING_DEFAULT_VALUE: total"]}`)
		return true
	})
	for level, want := range map[registry.Level]string{
		registry.Backward:       "/compatibility/subjects/orders-value/versions/latest",
		registry.FullTransitive: "/compatibility/subjects/orders-value/versions",
	} {
		err := r.Compatible(t.Context(), "orders-value", schema, level)
		if !errors.Is(err, registry.ErrIncompatible) || !strings.Contains(err.Error(), "total") || path.Load() != want {
			t.Errorf("%s: error %v, asked at %v", level, err, path.Load())
		}
	}
}

// Whatever says nothing about the schema is unavailable: credentials, a proxy's page, an answer that does not end.
func TestErrorsTellWhetherToTryAgain(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(status); _, _ = io.WriteString(w, body) }
	}
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   error
	}{
		"broken":       {answer(500, `{"error_code":50001,"message":"store"}`), codec.ErrUnavailable},
		"credentials":  {answer(401, `{"error_code":401,"message":"who are you"}`), codec.ErrUnavailable},
		"busy":         {answer(429, ``), codec.ErrUnavailable},
		"wrong path":   {answer(404, `<html>not found</html>`), codec.ErrUnavailable},
		"no JSON":      {answer(200, `<html>welcome</html>`), codec.ErrUnavailable},
		"too large":    {answer(200, strings.Repeat(" ", 5<<20)), codec.ErrUnavailable},
		"not found":    {answer(404, `{"error_code":40403,"message":"no schema"}`), registry.ErrNotFound},
		"incompatible": {answer(409, `{"error_code":409,"message":"incompatible"}`), registry.ErrIncompatible},
		"invalid":      {answer(422, `{"error_code":42201,"message":"invalid"}`), registry.ErrRefused},
	} {
		f := newFake(t)
		f.Intercept(func(w http.ResponseWriter, _ *http.Request) bool { c.answer(w); return true })
		r := f.client(t, registry.Options{Register: true})
		_, byID := r.Schema(t.Context(), 1)
		_, id := r.ID(t.Context(), "orders-value", schema)
		_, referenced := r.Referenced(t.Context(), registry.Reference{Subject: "orders-value", Version: 1})
		for _, err := range []error{byID, id, referenced} {
			if !errors.Is(err, c.want) || errors.Is(c.want, codec.ErrUnavailable) != errors.Is(err, codec.ErrUnavailable) {
				t.Errorf("%s: error %v, want %v", name, err, c.want)
			}
		}
	}
}

func TestRegistryThatIsAway(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := f.client(t, registry.Options{})
	f.Close()
	for range 2 {
		if _, err := r.Schema(t.Context(), 1); !errors.Is(err, codec.ErrUnavailable) {
			t.Errorf("error %v", err)
		}
	}
	if _, err := r.Versions(t.Context(), "orders-value", true); !errors.Is(err, codec.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}

func TestPasswordsAreSentAndNotShown(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var user, password string
	var mu sync.Mutex
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		user, password, _ = r.BasicAuth()
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	r, err := registry.New(registry.Options{URLs: []string{strings.Replace(f.URL(), "http://", "http://ann:secret@", 1)}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Schema(t.Context(), 1)
	mu.Lock()
	defer mu.Unlock()
	if user != "ann" || password != "secret" || err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%s:%s was sent, error %v", user, password, err)
	}
}

func TestURLsAreChecked(t *testing.T) {
	t.Parallel()
	for _, urls := range [][]string{nil, {""}, {"localhost:8081"}, {"ftp://host"}, {"http://ann:secret@ho st"}} {
		if _, err := registry.New(registry.Options{URLs: urls}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error %v", urls, err)
		}
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	for want, subject := range map[string]func(topic, record string) string{
		"orders-value":      registry.TopicName,
		"shop.Order":        registry.RecordName,
		"orders-shop.Order": registry.TopicRecordName,
	} {
		r, err := registry.New(registry.Options{URLs: []string{"http://localhost"}, Subject: subject})
		if err != nil || r.Subject("orders", "shop.Order") != want {
			t.Errorf("got %q, error %v, want %q", r.Subject("orders", "shop.Order"), err, want)
		}
	}
}

func TestFrame(t *testing.T) {
	t.Parallel()
	body := append(registry.AppendHeader(nil, 0x01020304), "rest"...)
	if string(body) != "\x00\x01\x02\x03\x04rest" {
		t.Errorf("framed %x", body)
	}
	if id, rest, err := registry.Split(body); id != 0x01020304 || string(rest) != "rest" || err != nil {
		t.Errorf("split %x, %q, error %v", id, rest, err)
	}
	for _, bad := range []string{"", "\x00\x01\x02\x03", "\x01\x00\x00\x00\x01x", "{\"id\":42}"} {
		if _, _, err := registry.Split([]byte(bad)); err == nil || !strings.Contains(err.Error(), "Confluent wire format") {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(registry.AppendHeader(nil, 1))
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		id, rest, err := registry.Split(body)
		if err == nil && string(append(registry.AppendHeader(nil, id), rest...)) != string(body) {
			t.Errorf("%x is split into %d and %x", body, id, rest)
		}
	})
}

// A hundred callers ask one question.
func TestOneQuestionForAll(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.SeedSchema("orders-value", 1, 7, sr.Schema{Schema: text})
	r := f.client(t, registry.Options{})
	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			if s, err := r.Schema(context.Background(), 7); err != nil || s.Text != text {
				t.Errorf("schema %+v, error %v", s, err)
			}
		})
	}
	callers.Wait()
	if n := f.asked.Load(); n != 1 {
		t.Errorf("%d questions", n)
	}
}

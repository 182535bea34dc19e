package ferry_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/ferrymq/ferry"
)

type traceKey struct{}

// Every way to publish passes the Publishing hook before anything is checked: it sees the id, sets headers, and the
// context it returns goes on. The caller's message and what else the hook changes stay.
func TestPublishingHook(t *testing.T) {
	var published []string
	b := newBroker(t, nil, ferry.Options{Hooks: ferry.Hooks{
		Publishing: func(ctx context.Context, m *ferry.Message) context.Context {
			if m.ID == "" {
				t.Error("it has no id")
			}
			m.Headers["trace"] = "t1"
			m.Topic, m.Key = "elsewhere", "k"
			return context.WithValue(ctx, traceKey{}, m.ID)
		},
		Authorize: func(ctx context.Context, a ferry.Access) error {
			if ctx.Value(traceKey{}) != a.Message.ID || a.Message.Headers["trace"] != "t1" {
				t.Errorf("Authorize has %v, %v", ctx.Value(traceKey{}), a.Message.Headers)
			}
			return nil
		},
		Published: func(ctx context.Context, e ferry.Event) {
			id, _ := ctx.Value(traceKey{}).(string)
			published = append(published, id)
		},
	}})
	ctx := context.Background()
	m := &ferry.Message{Topic: "orders", Body: []byte("x"), Headers: map[string]string{"a": "1"}}
	var want []string
	r, err := b.Publish(ctx, m)
	want = append(want, r.ID)
	rs, err2 := b.PublishBatch(ctx, []*ferry.Message{m, m})
	want = append(want, rs[0].ID, rs[1].ID)
	f, err3 := b.PublishAsync(ctx, m)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	r, err = f.Wait(ctx)
	want = append(want, r.ID)
	if err != nil || len(m.Headers) != 1 || m.Topic != "orders" {
		t.Errorf("%v, and the caller's message is %+v", err, m)
	}
	if len(published) != 4 {
		t.Fatalf("%v", published)
	}
	for i, d := range receive(t, b, "orders", 4) {
		if d.Headers["trace"] != "t1" || d.Headers["a"] != "1" || d.Key != "" || d.ID != want[i] || published[i] != want[i] {
			t.Errorf("%+v, want id %s; published %v", d.Message, want[i], published)
		}
	}
}

// A hook that sets too many headers is found, one that panics harms nothing.
func TestPublishingHookThatFails(t *testing.T) {
	b := newBroker(t, nil, ferry.Options{Logger: slog.New(slog.DiscardHandler), Hooks: ferry.Hooks{
		Publishing: func(ctx context.Context, m *ferry.Message) context.Context {
			if m.Key == "panic" {
				panic("no")
			}
			m.Headers[""] = "x"
			return nil
		},
	}})
	if _, err := ferry.Publish(t.Context(), b, "orders", 1); !errors.Is(err, ferry.ErrInvalid) {
		t.Errorf("a header without a name: %v", err)
	}
	if _, err := ferry.Publish(t.Context(), b, "orders", 1, ferry.Key("panic")); err != nil {
		t.Error(err)
	}
}

// Whoever counts or traces publishes is told of those that were not sent, too, with the context of their Publishing
// hook.
func TestPublishedIsToldOfWhatIsNotSent(t *testing.T) {
	var told []error
	b := newBroker(t, nil, ferry.Options{Hooks: ferry.Hooks{
		Authorize: func(_ context.Context, a ferry.Access) error {
			if a.Topic == "closed" {
				return errors.New("no")
			}
			return nil
		},
		Publishing: func(ctx context.Context, m *ferry.Message) context.Context {
			return context.WithValue(ctx, traceKey{}, m.ID)
		},
		Published: func(ctx context.Context, e ferry.Event) {
			if id, _ := ctx.Value(traceKey{}).(string); id != e.Message.ID || id != e.Receipt.ID || e.Topic != e.Message.Topic {
				t.Errorf("told of %+v with the context of %q", e.Message, id)
			}
			told = append(told, e.Err)
		},
	}})
	wants := func(what string, kinds ...error) {
		t.Helper()
		if len(told) != len(kinds) {
			t.Fatalf("%s: told of %v, want %v", what, told, kinds)
		}
		for i, kind := range kinds {
			if !errors.Is(told[i], kind) {
				t.Errorf("%s: told of %v, want %v", what, told[i], kind)
			}
		}
		told = nil
	}
	ctx := t.Context()
	_, _ = b.Publish(ctx, &ferry.Message{Topic: "closed"})
	wants("refused", ferry.ErrRefused)
	_, _ = b.Publish(ctx, &ferry.Message{Topic: "orders", Body: make([]byte, b.Driver().Capabilities().MaxBody+1)})
	wants("too large", ferry.ErrTooLarge)
	_, _ = b.Publish(ctx, &ferry.Message{Topic: "no topic"})
	wants("invalid", ferry.ErrInvalid)
	_, _ = b.PublishAsync(ctx, &ferry.Message{Topic: "closed"})
	wants("asynchronous", ferry.ErrRefused)
	_, _ = b.PublishBatch(ctx, []*ferry.Message{{Topic: "orders"}, {Topic: "closed"}, {Topic: "orders"}})
	wants("batch", ferry.ErrRefused, ferry.ErrNotApplied)
}

// Hooks side by side are both called, in order, and both must let a message pass.
func TestHooksAnd(t *testing.T) {
	var told []string
	one := func(name string, refuse error) ferry.Hooks {
		return ferry.Hooks{
			Authorize: func(context.Context, ferry.Access) error { told = append(told, "may "+name); return refuse },
			Publishing: func(ctx context.Context, m *ferry.Message) context.Context {
				m.Headers["by"] += name
				if name == "a" {
					panic("no")
				}
				return ctx
			},
			Published: func(_ context.Context, e ferry.Event) {
				told = append(told, e.Message.Headers["by"]+" "+name)
				panic("no")
			},
		}
	}
	publish := func(h ferry.Hooks) error {
		_, err := ferry.Publish(t.Context(),
			newBroker(t, nil, ferry.Options{Hooks: h, Logger: slog.New(slog.DiscardHandler)}), "orders", 1)
		return err
	}
	if err := publish(one("a", nil).And(one("b", nil)).And(ferry.Hooks{})); err != nil {
		t.Error(err)
	}
	if err := publish(ferry.Hooks{}.And(one("c", errors.New("no")).And(one("d", nil)))); !errors.Is(err,
		ferry.ErrRefused) {
		t.Errorf("one refused: %v", err)
	}
	want := []string{"may a", "may b", "ab a", "ab b", "may c", "cd c", "cd d"}
	if len(told) != len(want) {
		t.Fatalf("%v, want %v", told, want)
	}
	for i := range want {
		if told[i] != want[i] {
			t.Errorf("%v, want %v", told, want)
		}
	}
}

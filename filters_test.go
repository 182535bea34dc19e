package ferry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver/memory"
)

// wrap is a filter that writes its name and what the message is around a body.
type wrap string

func (w wrap) Names() []string { return []string{string(w)} }

func (w wrap) frame(a codec.About) (prefix, suffix string) {
	return fmt.Sprintf("%s(%s/%s/%s ", w, a.Topic, a.ID, a.Key), ")"
}

func (w wrap) Apply(_ context.Context, body []byte, a codec.About) ([]byte, string, error) {
	prefix, suffix := w.frame(a)
	return []byte(prefix + string(body) + suffix), string(w) + ";v=1", nil
}

func (w wrap) Undo(_ context.Context, body []byte, encoding string, a codec.About, limit int) ([]byte, error) {
	prefix, suffix := w.frame(a)
	rest, begins := strings.CutPrefix(string(body), prefix)
	plain, ends := strings.CutSuffix(rest, suffix)
	switch {
	case !begins || !ends || encoding != string(w)+";v=1":
		return nil, fmt.Errorf("%q is not what it is said to be, %s", body, encoding)
	case len(plain) > limit:
		return nil, errors.New("too large")
	}
	return []byte(plain), nil
}

// odd is a filter that does what a test says.
type odd struct {
	wrap
	apply func(body []byte) ([]byte, string, error)
	undo  func() ([]byte, error)
}

func (o odd) Apply(_ context.Context, body []byte, _ codec.About) ([]byte, string, error) {
	return o.apply(body)
}

func (o odd) Undo(context.Context, []byte, string, codec.About, int) ([]byte, error) { return o.undo() }

// TestEveryPublishIsFiltered: whichever way a message goes, it is stored as the filters made it, and the caller's stays
// as it is.
func TestEveryPublishIsFiltered(t *testing.T) {
	t.Parallel()
	message := func() *ferry.Message {
		return &ferry.Message{Topic: "orders", ID: "7", Key: "k", Body: []byte("body"),
			Headers: map[string]string{"a": "b"}}
	}
	for name, publish := range map[string]func(ctx context.Context, b *ferry.Broker, m *ferry.Message) error{
		"typed": func(ctx context.Context, b *ferry.Broker, m *ferry.Message) error {
			_, err := ferry.Publish(ctx, b, m.Topic, m.Body, ferry.ID(m.ID), ferry.Key(m.Key), ferry.Header("a", "b"))
			return err
		},
		"single": func(ctx context.Context, b *ferry.Broker, m *ferry.Message) error {
			_, err := b.Publish(ctx, m)
			return err
		},
		"batch": func(ctx context.Context, b *ferry.Broker, m *ferry.Message) error {
			_, err := b.PublishBatch(ctx, []*ferry.Message{m})
			return err
		},
		"future": func(ctx context.Context, b *ferry.Broker, m *ferry.Message) error {
			f, err := b.PublishAsync(ctx, m)
			if err != nil {
				return err
			}
			_, err = f.Wait(ctx)
			return err
		},
		"callback": func(ctx context.Context, b *ferry.Broker, m *ferry.Message) error {
			return errors.Join(b.PublishFunc(ctx, m, func(ferry.Receipt) {}), b.Flush(ctx))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, nil, ferry.Options{Filters: []codec.Filter{wrap("inner"), wrap("outer")}})
			m := message()
			if err := publish(t.Context(), b, m); err != nil {
				t.Fatal(err)
			}
			if len(m.Headers) != 1 || string(m.Body) != "body" {
				t.Errorf("the caller's message is changed: %q %v", m.Body, m.Headers)
			}
			stored := receive(t, b, "orders", 1)[0]
			if got, want := string(stored.Body), "outer(orders/7/k inner(orders/7/k body))"; got != want {
				t.Errorf("stored as %q, want %q", got, want)
			}
			if got := stored.Headers[ferry.EncodingHeader]; got != "inner;v=1,outer;v=1" {
				t.Errorf("encoding %q", got)
			}
			plain, err := b.UndoFilters(t.Context(), stored.Message)
			if err != nil {
				t.Fatal(err)
			}
			if string(plain.Body) != "body" || len(plain.Headers) != 1 || plain.Headers["a"] != "b" {
				t.Errorf("undone: %q with %v", plain.Body, plain.Headers)
			}
			if value, err := ferry.Decode[[]byte](t.Context(), b, stored); err != nil || string(value.Value) != "body" {
				t.Errorf("decoded: %v, %v", value, err)
			}
		})
	}
}

// TestFilterThatLeavesABody: what no filter changes is stored as without any, and nothing has to be undone.
func TestFilterThatLeavesABody(t *testing.T) {
	t.Parallel()
	leave := odd{wrap: "leave", apply: func(body []byte) ([]byte, string, error) { return nil, "", nil }}
	b := newBroker(t, nil, ferry.Options{Filters: []codec.Filter{leave, wrap("w"), leave2{leave}}})
	if _, err := ferry.Publish(t.Context(), b, "orders", []byte("body"), ferry.ID("7")); err != nil {
		t.Fatal(err)
	}
	if d := receive(t, b, "orders", 1)[0]; d.Headers[ferry.EncodingHeader] != "w;v=1" ||
		string(d.Body) != "w(orders/7/ body)" {
		t.Errorf("stored as %q, %v", d.Body, d.Headers)
	}
	none := newBroker(t, nil, ferry.Options{Filters: []codec.Filter{leave}})
	if _, err := ferry.Publish(t.Context(), none, "orders", []byte("body")); err != nil {
		t.Fatal(err)
	}
	if d := receive(t, none, "orders", 1)[0]; d.Headers != nil || string(d.Body) != "body" {
		t.Errorf("stored as %q, %v", d.Body, d.Headers)
	}
}

// leave2 is another filter of its kind.
type leave2 struct{ odd }

func (leave2) Names() []string { return []string{"leave2"} }

// TestFilterThatFails: nothing is sent, and the error says whether to try again.
func TestFilterThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		apply func(body []byte) ([]byte, string, error)
		want  error
	}{
		"an error": {func([]byte) ([]byte, string, error) { return nil, "", errors.New("no key") },
			ferry.ErrInvalid},
		"away": {func([]byte) ([]byte, string, error) {
			return nil, "",
				fmt.Errorf("kms: %w", codec.ErrUnavailable)
		}, ferry.ErrNotApplied},
		"a panic":        {func([]byte) ([]byte, string, error) { panic("oh") }, ferry.ErrInvalid},
		"another's name": {func(b []byte) ([]byte, string, error) { return b, "w", nil }, ferry.ErrInvalid},
		"two names":      {func(b []byte) ([]byte, string, error) { return b, "odd;a,w", nil }, ferry.ErrInvalid},
		"larger than allowed": {func([]byte) ([]byte, string, error) { return make([]byte, 2000), "odd", nil },
			ferry.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, newMemory(t, memory.Options{MaxBody: 1000}),
				ferry.Options{Logger: slog.New(slog.DiscardHandler),
					Filters: []codec.Filter{odd{wrap: "odd", apply: c.apply}, wrap("w")}})
			_, err := ferry.Publish(t.Context(), b, "orders", []byte("body"))
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if topics, err := b.Driver().Topics(t.Context()); err != nil || len(topics) != 0 {
				t.Errorf("something was sent: %v, %v", topics, err)
			}
		})
	}
}

// TestPlainBodyIsBounded: a body that is too large is refused although it would fit when it is compressed: the bound is
// that of what handlers get.
func TestPlainBodyIsBounded(t *testing.T) {
	t.Parallel()
	shrink := odd{wrap: "odd", apply: func([]byte) ([]byte, string, error) { return nil, "odd", nil }}
	b := newBroker(t, newMemory(t, memory.Options{MaxBody: 1000}), ferry.Options{Filters: []codec.Filter{shrink}})
	if _, err := ferry.Publish(t.Context(), b, "orders", make([]byte, 1001)); !errors.Is(err, ferry.ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
	if _, err := ferry.Publish(t.Context(), b, "orders", make([]byte, 1000)); err != nil {
		t.Error(err)
	}
}

// TestHooksAndFilters: hooks before the publish see what the caller gave, the one after it what was stored.
func TestHooksAndFilters(t *testing.T) {
	t.Parallel()
	var saw []string
	b := newBroker(t, nil, ferry.Options{Filters: []codec.Filter{wrap("w")}, Hooks: ferry.Hooks{
		Publishing: func(ctx context.Context, m *ferry.Message) context.Context {
			saw = append(saw, "publishing "+string(m.Body))
			return ctx
		},
		Authorize: func(_ context.Context, a ferry.Access) error {
			saw = append(saw, "authorize "+string(a.Message.Body))
			return nil
		},
		Published: func(_ context.Context, e ferry.Event) { saw = append(saw, "published "+string(e.Message.Body)) },
	}})
	if _, err := ferry.Publish(t.Context(), b, "orders", []byte("body"), ferry.ID("7")); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(saw, ", "); got != "publishing body, authorize body, published w(orders/7/ body)" {
		t.Errorf("hooks saw: %s", got)
	}
}

// TestEncodingHeaderIsOurs: a body that only claims to be encoded is not published.
func TestEncodingHeaderIsOurs(t *testing.T) {
	t.Parallel()
	for _, o := range []ferry.Options{{}, {Filters: []codec.Filter{wrap("w")}}} {
		b := newBroker(t, nil, o)
		if _, err := ferry.Publish(t.Context(), b, "orders", []byte("body"),
			ferry.Header(ferry.EncodingHeader, "w;v=1")); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("with %d filters: got %v, want ErrInvalid", len(o.Filters), err)
		}
	}
}

// TestBodyThatCannotBeUndone: the error says what is missing, and whether to try again.
func TestBodyThatCannotBeUndone(t *testing.T) {
	t.Parallel()
	b := newBroker(t, nil, ferry.Options{Logger: slog.New(slog.DiscardHandler), Filters: []codec.Filter{
		wrap("w"),
		odd{wrap: "panics", undo: func() ([]byte, error) { panic("oh") }},
		odd{wrap: "away", undo: func() ([]byte, error) { return nil, codec.ErrUnavailable }},
	}})
	for _, c := range []struct {
		encoding string
		want     error
		says     string
	}{
		{"w;v=1", ferry.ErrInvalid, "is not what it is said to be"},
		{"aes-gcm;k=2", ferry.ErrInvalid,
			`no filter here for "aes-gcm" (hint: give this program the filters of the producer`},
		{"w;v=1,zstd", ferry.ErrInvalid, `no filter here for "zstd"`},
		{"", ferry.ErrInvalid, `no filter here for ""`},
		{strings.Repeat("w,", 1000), ferry.ErrInvalid, "more than 8 encodings"},
		{"panics", ferry.ErrInvalid, "panicked: oh"},
		{"away", ferry.ErrNotApplied, "then try again"},
	} {
		m := &ferry.Message{Topic: "orders", ID: "7", Body: []byte("body"),
			Headers: map[string]string{ferry.EncodingHeader: c.encoding}}
		if _, err := b.UndoFilters(t.Context(), m); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.40q: got %v, want %v that says %q", c.encoding, err, c.want, c.says)
		}
		if _, err := ferry.Decode[[]byte](t.Context(), b, &ferry.Delivery{Message: m}); !errors.Is(err, c.want) {
			t.Errorf("%.40q: Decode returned %v", c.encoding, err)
		}
		if !bytes.Equal(m.Body, []byte("body")) || len(m.Headers) != 1 {
			t.Errorf("%.40q: the message is changed", c.encoding)
		}
	}
}

// TestFiltersOfABroker: a set of filters that could not be undone is refused when the broker is made.
func TestFiltersOfABroker(t *testing.T) {
	t.Parallel()
	for name, filters := range map[string][]codec.Filter{
		"nil":        {nil},
		"twice":      {wrap("w"), wrap("w")},
		"a bad name": {wrap("a,b")},
		"no name":    {wrap("")},
		"too many": {wrap("1"), wrap("2"), wrap("3"), wrap("4"), wrap("5"), wrap("6"), wrap("7"), wrap("8"),
			wrap("9")},
	} {
		d := newMemory(t, memory.Options{})
		if _, err := ferry.New(d, ferry.Options{Filters: filters}); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestNoFilterCostsNothing: without filters nothing is allocated, with or without headers.
func TestNoFilterCostsNothing(t *testing.T) {
	b := newBroker(t, nil, ferry.Options{})
	for _, m := range []*ferry.Message{{Topic: "orders"}, {Topic: "orders", Headers: map[string]string{"a": "b"}}} {
		n := testing.AllocsPerRun(100, func() {
			err := b.ApplyFilters(t.Context(), m)
			same, undoErr := b.UndoFilters(t.Context(), m)
			if err != nil || undoErr != nil || same != m {
				t.Error(err, undoErr)
			}
		})
		if n != 0 {
			t.Errorf("%v allocations with headers %v", n, m.Headers)
		}
	}
}

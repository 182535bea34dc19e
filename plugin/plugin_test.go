package plugin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/plugin"
	"github.com/ferrymq/ferry/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// with returns a plugin that has these parts.
func with(name string, parts plugin.Parts) plugin.Plugin {
	return plugin.Plugin{Name: name, Version: "1",
		Start: func(context.Context, plugin.Host) (plugin.Parts, error) { return parts, nil }}
}

// start starts plugins, which are stopped with the test, and returns what they log.
func start(t *testing.T, plugins ...plugin.Plugin) (*plugin.Set, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s, err := plugin.Start(t.Context(),
		plugin.Options{Plugins: plugins, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s, &log
}

// open returns a broker in memory.
func open(t *testing.T, o ferry.Options) *ferry.Broker {
	t.Helper()
	d, err := memory.New(t.Context(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := ferry.New(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// handled publishes a message and returns what its handler got, with the parts of the plugins around. It must come
// through at the first attempt.
func handled(t *testing.T, s *plugin.Set, batch bool) (got []string) {
	t.Helper()
	b := open(t, s.Broker(ferry.Options{Logger: slog.New(slog.DiscardHandler)}))
	w := worker.New(b, worker.Options{Logger: slog.New(slog.DiscardHandler)})
	s.Use(w)
	if batch {
		worker.HandleBatch(w, "orders", func(_ context.Context, ms []*ferry.Msg[string]) error {
			for _, m := range ms {
				got = append(got, fmt.Sprint(m.Value, " ", m.Attempt))
			}
			return nil
		})
	} else {
		worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[string]) error {
			got = append(got, fmt.Sprint(m.Value, " ", m.Attempt))
			return nil
		})
	}
	if _, err := ferry.Publish(t.Context(), b, "orders", "body"); err != nil {
		t.Fatal(err)
	}
	stop := runtest.Start(t, w.Run)
	synctest.Wait()
	time.Sleep(time.Minute) // of virtual time: for retries, if there were any
	stop()
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return got
}

// TestInOrder: plugins start in order and stop in reverse; their middleware is around one another in order, and their
// filters and hooks follow those of the program.
func TestInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saw []string
		note := func(text string) { saw = append(saw, text) }
		make := func(name string) plugin.Plugin {
			return plugin.Plugin{Name: name, Start: func(context.Context, plugin.Host) (plugin.Parts, error) {
				note("start " + name)
				return plugin.Parts{
					Hooks: ferry.Hooks{Published: func(context.Context, ferry.Event) { note("published " + name) }},
					Middleware: []worker.Middleware{func(next worker.Handler) worker.Handler {
						return func(ctx context.Context, d *ferry.Delivery) error {
							note("before " + name)
							defer note("after " + name)
							return next(ctx, d)
						}
					}},
					Stop: func(context.Context) error { note("stop " + name); return nil },
				}, nil
			}}
		}
		s, _ := start(t, make("a"), make("b"))
		if got := handled(t, s, false); !slices.Equal(got, []string{"body 1"}) {
			t.Errorf("handled: %q", got)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		want := "start a, start b, published a, published b, before a, before b, after b, after a, stop b, stop a"
		if got := strings.Join(saw, ", "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := fmt.Sprint(s.List()); got != "[{a  stopped } {b  stopped }]" {
			t.Errorf("listed: %s", got)
		}
	})
}

// TestPanics: whichever part of a plugin panics, and whenever, the message is handled once, the other plugin is called,
// and the log names the one.
func TestPanics(t *testing.T) {
	oh := func(context.Context, ferry.Event) { panic("oh") }
	for name, bad := range map[string]plugin.Parts{
		"hooks": {Hooks: ferry.Hooks{Published: oh, Received: oh, Started: oh, Succeeded: oh, Settled: oh,
			WorkerStarted: oh, WorkerStopped: oh,
			Publishing: func(context.Context, *ferry.Message) context.Context { panic("oh") }}},
		"before": {Middleware: []worker.Middleware{func(worker.Handler) worker.Handler {
			return func(context.Context, *ferry.Delivery) error { panic("oh") }
		}}},
		"after": {Middleware: []worker.Middleware{func(next worker.Handler) worker.Handler {
			return func(ctx context.Context, d *ferry.Delivery) error { panic(next(ctx, d)) }
		}}},
		"made": {Middleware: []worker.Middleware{func(worker.Handler) worker.Handler { panic("oh") }}},
		"nil":  {Middleware: []worker.Middleware{func(worker.Handler) worker.Handler { return nil }}},
		"stop": {Stop: func(context.Context) error { panic("oh") }},
	} {
		for _, batch := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " batch ", batch), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					others, stopped := 0, false
					good := plugin.Parts{Middleware: []worker.Middleware{func(next worker.Handler) worker.Handler {
						return func(ctx context.Context, d *ferry.Delivery) error { others++; return next(ctx, d) }
					}}, Stop: func(context.Context) error { stopped = true; return nil }}
					s, log := start(t, with("good", good), with("bad", bad))
					if got := handled(t, s, batch); !slices.Equal(got, []string{"body 1"}) || others != 1 {
						t.Errorf("handled: %q, past the other %d times", got, others)
					}
					err := s.Stop(t.Context())
					if !stopped || (err != nil) != (name == "stop") {
						t.Errorf("stopped %v: %v", stopped, err)
					}
					if text := log.String(); !strings.Contains(text, "plugin=bad") ||
						strings.Contains(text, "plugin=good") {
						t.Errorf("the log: %s", text)
					}
				})
			})
		}
	}
}

// TestPanicOfTheHandler: that of a handler passes through a plugin: it is no plugin's fault, and a failed attempt.
func TestPanicOfTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pass := func(next worker.Handler) worker.Handler {
			return func(ctx context.Context, d *ferry.Delivery) error { return next(ctx, d) }
		}
		first := true
		panics := func(next worker.Handler) worker.Handler { // stands for the handler
			return func(ctx context.Context, d *ferry.Delivery) error {
				if first {
					first = false
					panic("oh")
				}
				return next(ctx, d)
			}
		}
		inner := with("inner", plugin.Parts{Middleware: []worker.Middleware{panics}})
		inner.Required = true
		s, log := start(t, with("outer", plugin.Parts{Middleware: []worker.Middleware{pass}}), inner)
		if got := handled(t, s, false); !slices.Equal(got, []string{"body 2"}) {
			t.Errorf("handled: %q, want the second attempt", got)
		}
		if strings.Contains(log.String(), "plugin=outer") {
			t.Errorf("the log: %s", log)
		}
	})
}

// TestMiddlewareCallsOnce: the handler is called once, with a context that belongs to the message.
func TestMiddlewareCallsOnce(t *testing.T) {
	for name, m := range map[string]worker.Middleware{
		"twice": func(next worker.Handler) worker.Handler {
			return func(ctx context.Context, d *ferry.Delivery) error { return errors.Join(next(ctx, d), next(ctx, d)) }
		},
		"elsewhere": func(next worker.Handler) worker.Handler {
			return func(_ context.Context, d *ferry.Delivery) error { return next(context.Background(), d) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := start(t, with("bad", plugin.Parts{Middleware: []worker.Middleware{m}}))
				if got := handled(t, s, false); len(got) > 1 && got[0] == got[1] {
					t.Errorf("the handler was called twice for one attempt: %q", got)
				}
			})
		})
	}
}

// TestStartFails: what does not start is named and left out; the others work. Without a required one nothing starts,
// and what did is stopped.
func TestStartFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stops := 0
		good := with("good", plugin.Parts{Stop: func(context.Context) error { stops++; return nil }})
		for name, f := range map[string]func(context.Context, plugin.Host) (plugin.Parts, error){
			"fails": func(context.Context, plugin.Host) (plugin.Parts, error) {
				return plugin.Parts{},
					errors.New("no")
			},
			"panics": func(context.Context, plugin.Host) (plugin.Parts, error) { panic("oh") },
			"has a nil filter": func(context.Context, plugin.Host) (plugin.Parts, error) {
				return plugin.Parts{Filters: []codec.Filter{nil}}, nil
			},
			"has a filter that panics": func(context.Context, plugin.Host) (plugin.Parts, error) {
				return plugin.Parts{Filters: []codec.Filter{struct{ codec.Filter }{}}}, nil
			},
		} {
			bad := plugin.Plugin{Name: "bad", Version: "2", Start: f}
			s, log := start(t, bad, good)
			if got := handled(t, s, false); len(got) != 1 {
				t.Errorf("%s: handled: %q", name, got)
			}
			list := s.List()
			if list[0].State != plugin.Failed || list[0].Problem == "" || list[1].State != plugin.Running ||
				!strings.Contains(log.String(), "plugin=bad") {
				t.Errorf("%s: %v, %s", name, list, log)
			}
			bad.Required = true
			stops = 0
			if _, err := plugin.Start(t.Context(), plugin.Options{Plugins: []plugin.Plugin{good, bad},
				Logger: slog.New(slog.DiscardHandler)}); !errors.Is(err, ferry.ErrInvalid) || stops != 1 {
				t.Errorf("%s and is required: %v, %d stopped", name, err, stops)
			}
		}
	})
}

// TestSettings: a plugin reads its settings strictly, or is left out; those of nobody are refused.
func TestSettings(t *testing.T) {
	t.Parallel()
	var got struct {
		Rate int `json:"rate"`
	}
	p := plugin.Plugin{Name: "p",
		Start: func(_ context.Context, h plugin.Host) (plugin.Parts, error) { return plugin.Parts{}, h.Config(&got) }}
	run := func(settings ...plugin.Setting) (*plugin.Set, error) {
		return plugin.Start(t.Context(),
			plugin.Options{Plugins: []plugin.Plugin{p}, Settings: settings, Logger: slog.New(slog.DiscardHandler)})
	}
	for _, c := range []struct {
		setting plugin.Setting
		want    plugin.State
	}{
		{plugin.Setting{Name: "p", Config: map[string]any{"rate": 7}}, plugin.Running},
		{plugin.Setting{Name: "p"}, plugin.Running},
		{plugin.Setting{Name: "p", Disabled: true}, plugin.Disabled},
		{plugin.Setting{Name: "p", Config: map[string]any{"rat": 7}}, plugin.Failed},
		{plugin.Setting{Name: "p", Config: map[string]any{"rate": "fast"}}, plugin.Failed},
	} {
		if s, err := run(c.setting); err != nil || s.List()[0].State != c.want {
			t.Errorf("%+v: %v, %v", c.setting, s, err)
		}
	}
	if got.Rate != 7 {
		t.Errorf("the rate is %d", got.Rate)
	}
	for name, o := range map[string]plugin.Options{
		"unknown":  {Plugins: []plugin.Plugin{p}, Settings: []plugin.Setting{{Name: "q"}}},
		"twice":    {Plugins: []plugin.Plugin{p}, Settings: []plugin.Setting{{Name: "p"}, {Name: "p"}}},
		"two":      {Plugins: []plugin.Plugin{p, p}},
		"nameless": {Plugins: []plugin.Plugin{{Start: p.Start}}},
		"empty":    {Plugins: []plugin.Plugin{{Name: "p"}}},
	} {
		if _, err := plugin.Start(t.Context(), o); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAuthorizeTopic: a plugin refuses topics, and one that panics refuses everything.
func TestAuthorizeTopic(t *testing.T) {
	t.Parallel()
	ask := func(_ context.Context, topic, group string) error {
		switch {
		case topic == "secret":
			return errors.New("not for you")
		case topic == "panic":
			panic("oh")
		}
		return nil
	}
	var asked []string
	also := func(_ context.Context, a ferry.Access) error { asked = append(asked, a.Topic); return nil }
	s, _ := start(t, with("auth", plugin.Parts{AuthorizeTopic: ask, Hooks: ferry.Hooks{Authorize: also}}))
	b := open(t, s.Broker(ferry.Options{}))
	defer func() { _ = b.Close(context.Background()) }()
	for topic, want := range map[string]error{"open": nil, "secret": ferry.ErrRefused, "panic": ferry.ErrRefused} {
		if _, err := ferry.Publish(t.Context(), b, topic, 1); !errors.Is(err, want) || want != nil &&
			!strings.Contains(err.Error(), "plugin auth") {
			t.Errorf("%s: %v", topic, err)
		}
	}
	if len(asked) != 3 {
		t.Errorf("the hook was asked for %v", asked)
	}
}

// shouting is a filter of a plugin, which panics on some bodies.
type shouting struct{}

func (shouting) Names() []string { return []string{"shout"} }

func (shouting) Apply(_ context.Context, body []byte, _ codec.About) ([]byte, string, error) {
	if len(body) == 0 {
		panic("oh")
	}
	return bytes.ToUpper(body), "shout", nil
}

func (shouting) Undo(_ context.Context, body []byte, _ string, _ codec.About, _ int) ([]byte, error) {
	return bytes.ToLower(body), nil
}

// TestFilters: those of plugins follow those of the program. When one panics nothing is sent, and the error names it.
func TestFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := start(t, with("shout", plugin.Parts{Filters: []codec.Filter{shouting{}}}))
		if got := handled(t, s, false); !slices.Equal(got, []string{"body 1"}) {
			t.Errorf("handled: %q", got)
		}
		b := open(t, s.Broker(ferry.Options{}))
		defer func() { _ = b.Close(context.Background()) }()
		if _, err := ferry.Publish(t.Context(), b, "orders", []byte{}); !errors.Is(err, ferry.ErrInvalid) ||
			!strings.Contains(err.Error(), "plugin shout panicked: oh") {
			t.Errorf("got %v", err)
		}
		if !strings.Contains(log.String(), "plugin=shout") {
			t.Errorf("the log: %s", log)
		}
	})
}

// TestStopHangs: a plugin that does not stop is left behind when the context ends, and the others are stopped.
func TestStopHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped, release := false, make(chan struct{})
		s, _ := start(t,
			with("good", plugin.Parts{Stop: func(context.Context) error { stopped = true; return nil }}),
			with("hangs", plugin.Parts{Stop: func(context.Context) error { <-release; return nil }}),
			with("late", plugin.Parts{Stop: func(ctx context.Context) error { <-ctx.Done(); return nil }}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := s.Stop(ctx)
		if !errors.Is(err, ferry.ErrUnknown) || !strings.Contains(err.Error(), "plugin hangs") ||
			strings.Contains(err.Error(), "plugin late") || !stopped {
			t.Errorf("stopped %v, error %v", stopped, err)
		}
		close(release)
	})
}

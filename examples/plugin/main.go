// Command plugin shows a plugin that counts messages, one that refuses a topic, and one that is broken and harms
// nobody.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/plugin"
	"github.com/ferrymq/ferry/worker"
)

// counter counts what passes, and tells when it stops.
func counter() plugin.Plugin {
	return plugin.Plugin{Name: "counter", Version: "1.0.0", Start: func(_ context.Context, h plugin.Host) (plugin.Parts,
		error) {
		config := struct {
			Of string `json:"of"`
		}{"messages"}
		if err := h.Config(&config); err != nil {
			return plugin.Parts{}, err
		}
		var published, handled atomic.Int64
		return plugin.Parts{
			Hooks: ferry.Hooks{Published: func(_ context.Context, e ferry.Event) {
				if e.Err == nil {
					published.Add(1)
				}
			}},
			Middleware: []worker.Middleware{func(next worker.Handler) worker.Handler {
				return func(ctx context.Context, d *ferry.Delivery) error {
					handled.Add(1)
					return next(ctx, d)
				}
			}},
			Stop: func(context.Context) error {
				fmt.Println("counter:", published.Load(), config.Of, "published,", handled.Load(), "handled")
				return nil
			},
		}, nil
	}}
}

// doorkeeper lets nobody publish to the topic of salaries.
func doorkeeper() plugin.Plugin {
	return plugin.Plugin{Name: "doorkeeper", Required: true, Start: func(context.Context, plugin.Host) (plugin.Parts,
		error) {
		return plugin.Parts{AuthorizeTopic: func(_ context.Context, topic, _ string) error {
			if topic == "salaries" {
				return errors.New("not for you")
			}
			return nil
		}}, nil
	}}
}

// broken panics whenever it is called.
func broken() plugin.Plugin {
	return plugin.Plugin{Name: "broken", Start: func(context.Context, plugin.Host) (plugin.Parts, error) {
		return plugin.Parts{Middleware: []worker.Middleware{func(worker.Handler) worker.Handler {
			return func(context.Context, *ferry.Delivery) error { panic("oh") }
		}}}, nil
	}}
}

func main() {
	ctx := context.Background()
	plugins, err := plugin.Start(ctx, plugin.Options{
		Plugins:  []plugin.Plugin{counter(), doorkeeper(), broken()},
		Settings: []plugin.Setting{{Name: "counter", Config: map[string]any{"of": "orders"}}}, // from a file, for example
		Logger:   slog.New(slog.DiscardHandler),                                               // it would name the broken one
	})
	if err != nil {
		log.Fatal(err)
	}
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"), plugins.Broker(ferry.Options{}))
	if err != nil {
		log.Fatal(err)
	}
	for _, topic := range []string{"orders", "salaries"} {
		_, err := ferry.Publish(ctx, broker, topic, "one")
		fmt.Println(topic, "is refused:", errors.Is(err, ferry.ErrRefused))
	}
	handle(broker, plugins)
	if err := errors.Join(broker.Close(ctx), plugins.Stop(ctx)); err != nil {
		log.Fatal(err)
	}
}

// handle runs a worker until it has handled a message.
func handle(b *ferry.Broker, plugins *plugin.Set) {
	ctx, stop := context.WithCancel(context.Background())
	w := worker.New(b, worker.Options{})
	plugins.Use(w)
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[string]) error {
		fmt.Println("order", m.Value, "is handled, attempt", m.Attempt)
		stop()
		return nil
	})
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			log.Fatal(err)
		}
	})
	running.Wait()
}

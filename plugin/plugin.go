// Package plugin puts what wraps messages together from parts that others wrote: hooks, middleware, filters, channels
// of notifications, authorisation.
//
//	plugins, err := plugin.Start(ctx, plugin.Options{Plugins: []plugin.Plugin{metrics.Plugin(), masking.Plugin()}})
//	defer plugins.Stop(ctx)
//	broker, err := open.URL(ctx, url, plugins.Broker(ferry.Options{}))
//	w := worker.New(broker, worker.Options{})
//	plugins.Use(w)
//
// A plugin is a value that a program names in its code: there is no registry, and nothing is loaded at run time. They
// start in order and stop in reverse. One that fails or panics is named in the log, and harms neither the others nor a
// message, unless it is Required.
package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/worker"
)

// Plugin is something that takes part in the work of brokers and workers.
type Plugin struct {
	// Name is its own among those of a program.
	Name string
	// Version is for people.
	Version string
	// Required says that messages must not pass without it, as without encryption or authorisation: if it does not
	// start, none does, and a panic of its middleware fails the attempt.
	Required bool
	// Start makes its parts. It is called once, and has to return soon; what goes on after that ends in Parts.Stop.
	Start func(ctx context.Context, h Host) (Parts, error)
}

// Parts is what a plugin takes part with. All are optional.
type Parts struct {
	Hooks      ferry.Hooks
	Middleware []worker.Middleware
	Filters    []codec.Filter
	// Channels are where notifications can be sent to, by the names that targets use: see Set.Channels.
	Channels map[string]notify.Channel
	// AuthorizeTopic may refuse a publish to a topic, or a group's subscription, with an error; the group is empty for
	// a publish. Who asks is in the context. In doubt, after a panic, nobody passes.
	AuthorizeTopic func(ctx context.Context, topic, group string) error
	// Stop ends what Start began.
	Stop func(ctx context.Context) error
}

// Host is what a plugin is given.
type Host struct {
	// Logger names the plugin.
	Logger *slog.Logger
	config map[string]any
}

// Config reads the settings of the plugin into a struct, by its JSON names. One that the struct does not have is an
// error.
func (h Host) Config(into any) error {
	text, err := json.Marshal(h.config)
	if err == nil && h.config != nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err = d.Decode(into)
	}
	if err != nil {
		return driver.NewError(ferry.ErrInvalid, "the settings of the plugin do not fit", "see which settings it has",
			err)
	}
	return nil
}

// Setting is what a program, or its configuration file, says about one plugin.
type Setting struct {
	Name string `json:"name" yaml:"name"`
	// Disabled leaves it out.
	Disabled bool `json:"disabled,omitempty" yaml:"disabled,omitempty"`
	// Config is for the plugin: see Host.Config.
	Config map[string]any `json:"config,omitempty" yaml:"config,omitempty"`
}

// Options of Start.
type Options struct {
	// Plugins are started in this order, and their parts wrap messages in this order: the first one's middleware is the
	// outermost.
	Plugins []Plugin
	// Settings are at most one for each plugin. One without is started as it is.
	Settings []Setting
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// State is what became of a plugin.
type State string

// States.
const (
	Running  State = "running"
	Disabled State = "disabled"
	Failed   State = "failed" // it did not start
	Stopped  State = "stopped"
)

// Info tells about one plugin.
type Info struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	State   State  `json:"state"`
	// Problem is why it failed.
	Problem string `json:"problem,omitempty"`
}

package admin

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/operation"
	"github.com/ferrymq/ferry/operation/kinds"
	"github.com/ferrymq/ferry/schedule"
	"github.com/ferrymq/ferry/wecom"
)

// Options of an API.
type Options struct {
	// Broker is what it shows and changes. Required.
	Broker *ferry.Broker
	// Guards is the store that the guards of workers share. Without one limits and breakers answer with 501.
	Guards guard.Store
	// WeCom is the customer service that this process pulls. Without one its accounts answer with 501.
	WeCom *wecom.Pipeline
	// Actions records who did what. Without one nothing is recorded, and actions answer with 501.
	Actions *auth.Actions
	// Masks say what is never shown of messages. Default to none.
	Masks []Mask
	// Codecs read bodies that are no JSON, to show them decoded. Default to none.
	Codecs []codec.Codec
	// Environment names the installation, for people: "production". Defaults to none.
	Environment string
	// Version is that of the server. Defaults to none.
	Version string
	// MaxStreams is how many live streams there may be at once. Defaults to 1000.
	MaxStreams int
	// Watch evaluates the rules of alerts. Without one rules answer with 501; alerts are read from the broker.
	Watch *alert.Watch
	// NotifyTopic is the topic of the hubs. Defaults to notify.DefaultTopic.
	NotifyTopic string
	// Limits say what is unhealthy. Each defaults to that of package monitor.
	Limits monitor.Limits
}

// API answers the requests of operators. It is safe for concurrent use.
type API struct {
	o          Options
	broker     *ferry.Broker
	driver     driver.Driver
	log        *slog.Logger
	started    time.Time
	letters    *deadletter.Queue
	operations *operation.Queue
	schedules  *schedule.Scheduler
	collector  *monitor.Collector
	tokens     *auth.Tokens
	users      *auth.Users
	masks      []Mask
	series     *series
	streams    chan struct{} // a place for each stream
	tails      tails
	looks      looks

	mux  *http.ServeMux
	huma huma.API
	spec func() []byte // the OpenAPI document, written when it is asked for first
}

// New checks the options and returns an API. It starts nothing: Run does.
func New(o Options) (*API, error) {
	if o.Broker == nil {
		return nil, driver.NewError(driver.ErrInvalid, "the admin API has no broker",
			"open one first, with open.URL for example", nil)
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = defaultMaxStreams
	}
	if o.MaxStreams < 0 {
		return nil, driver.NewError(driver.ErrInvalid, "MaxStreams is negative", "leave it zero for the default", nil)
	}
	a := &API{o: o, broker: o.Broker, driver: o.Broker.Driver(), log: o.Broker.Logger(), started: time.Now(),
		series: newSeries(), streams: make(chan struct{}, o.MaxStreams), tails: tails{of: map[string]*tail{}}}
	var err error
	if a.masks, err = checkMasks(o.Masks); err != nil {
		return nil, err
	}
	if err := a.open(); err != nil {
		return nil, err
	}
	a.wire()
	return a, nil
}

// open makes what the functions of the routes work with.
func (a *API) open() error {
	a.tokens = auth.NewTokens(a.broker)
	a.users = auth.NewUsers(a.broker)
	var err error
	if a.letters, err = deadletter.New(a.broker); err != nil {
		return err
	}
	if a.operations, err = operation.New(a.broker, kinds.All(a.broker)...); err != nil {
		return err
	}
	if a.schedules, err = schedule.New(a.broker, schedule.Options{}); err != nil {
		return err
	}
	a.collector, err = monitor.NewCollector(a.broker, monitor.CollectorOptions{
		Options: monitor.Options{Limits: a.o.Limits}, Processes: cluster.Processes})
	return err
}

// Run collects figures over time, and carries out operations, until ctx ends. It then returns nil. An API that is not
// run answers all the same, but without series, and its operations wait for somebody else.
func (a *API) Run(ctx context.Context) error {
	w, err := operation.NewWorker(a.operations, operation.WorkerOptions{OnError: func(err error) {
		a.log.WarnContext(ctx, "admin: operations wait", "error", err)
	}})
	if err != nil {
		return err
	}
	var background sync.WaitGroup
	background.Go(func() { a.sample(ctx) })
	background.Go(func() { a.flush(ctx) })
	err = w.Run(ctx)
	background.Wait()
	return err
}

// Package child is the main function of the processes of a torture run.
package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/victim"
	"github.com/ferrymq/ferry/test/torture/workload"
)

// order is what the harness tells a process on its command line.
type order struct {
	url, dir, name string
	via            detours
	settings       workload.Settings
}

// Main runs one process until SIGTERM, and listens on stdin: for what to take on ("begin slow 2s") or give up ("end
// slow"), and, if it is an app, for the word "drain".
func Main(role string, args []string, stdin io.Reader) error {
	var o order
	flags := flag.NewFlagSet(role, flag.ContinueOnError)
	flags.StringVar(&o.url, "url", "", "URL of the broker")
	flags.StringVar(&o.dir, "dir", "", "directory of the histories; empty: none are written")
	flags.StringVar(&o.name, "name", role, "name of this process in its history")
	via := flags.String("via", "", "where to connect to instead of the servers' addresses, as JSON")
	text := flags.String("settings", "{}", "what to do, as JSON (workload.Settings)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.url == "" {
		return errors.New("-url is required; make torture starts this process with it")
	}
	if err := json.Unmarshal([]byte(*text), &o.settings); err != nil {
		return fmt.Errorf("-settings: %w", err)
	}
	if *via != "" {
		if err := json.Unmarshal([]byte(*via), &o.via); err != nil {
			return fmt.Errorf("-via: %w", err)
		}
	}
	o.settings.Role = role
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return o.run(ctx, stdin)
}

func (o order) run(ctx context.Context, stdin io.Reader) (err error) {
	log := history.Discard(o.name)
	if o.dir != "" {
		if log, err = history.Create(o.dir, o.name); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	harm := victim.NewHarm()
	var brokers []*ferry.Broker
	defer func() {
		for _, b := range brokers {
			err = errors.Join(err, b.Close(context.WithoutCancel(ctx)))
		}
	}()
	for range max(o.settings.Clients, 1) {
		plain, err := o.open(ctx)
		if err != nil || plain == nil {
			return err
		}
		broker, err := ferry.New(victim.Wrap(plain.Driver(), log, harm, false),
			ferry.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		brokers = append(brokers, broker)
	}
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() { log.Watch(watching, o.name, max(o.settings.Lease/4, 250*time.Millisecond)) })
	defer watch.Wait()
	defer unwatch()
	ear := &ear{habits: &workload.Habits{}, harm: harm, drain: make(chan struct{})}
	go ear.listen(stdin) // ends with the process, or when the harness closes the pipe
	o.settings.Rate /= len(brokers)
	errs := make([]error, len(brokers))
	var running sync.WaitGroup
	for i, b := range brokers {
		h := workload.Host{Broker: b, Log: log, Habits: ear.habits, Drain: ear.drain}
		if len(brokers) > 1 {
			h.Instance = fmt.Sprintf("%s-%d", o.name, i+1)
		}
		running.Go(func() { errs[i] = o.settings.Run(ctx, h) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// openPatience is how long a process waits for a server that is down. One that is started in the middle of a fault
// would otherwise end, and a supervisor start it again.
const openPatience = 30 * time.Second

// open returns no broker and no error when ctx ends first.
func (o order) open(ctx context.Context) (*ferry.Broker, error) {
	end := time.Now().Add(openPatience)
	for {
		opening, cancel := context.WithTimeout(ctx, 5*time.Second)
		b, err := o.via.open(opening, o.url)
		cancel()
		switch {
		case err == nil || errors.Is(err, ferry.ErrInvalid):
			return b, err
		case ctx.Err() != nil:
			return nil, nil
		case time.Now().After(end):
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ear hears what the harness says.
type ear struct {
	habits *workload.Habits
	harm   *victim.Harm
	once   sync.Once
	drain  chan struct{}
}

func (e *ear) listen(stdin io.Reader) {
	for lines := bufio.NewScanner(stdin); lines.Scan(); {
		switch w := strings.Fields(lines.Text()); {
		case len(w) == 1 && w[0] == "drain":
			e.once.Do(func() { close(e.drain) })
		case len(w) == 3 && w[0] == "begin": // checked by the harness before it was sent
			_, _ = e.habits.Begin(w[1], w[2])
			_, _ = e.harm.Begin(w[1], w[2])
		case len(w) == 2 && w[0] == "end":
			_, _ = e.habits.End(w[1])
			_, _ = e.harm.End(w[1])
		}
	}
}

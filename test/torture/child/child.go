// Package child is the main function of the producer and consumer processes of a torture run.
package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/victim"
	"github.com/ferrymq/ferry/test/torture/workload"
)

// Main runs one process until SIGTERM, and listens on stdin for habits to take on ("begin slow 2s") or give up
// ("end slow").
func Main(role string, args []string, stdin io.Reader) error {
	flags := flag.NewFlagSet(role, flag.ContinueOnError)
	url := flags.String("url", "", "URL of the broker")
	dir := flags.String("dir", "", "directory of the histories")
	name := flags.String("name", role, "name of this process in its history")
	text := flags.String("settings", "{}", "what to do, as JSON (workload.Settings)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *url == "" || *dir == "" {
		return errors.New("-url and -dir are required; make torture starts this process with both")
	}
	settings := workload.Settings{}
	if err := json.Unmarshal([]byte(*text), &settings); err != nil {
		return fmt.Errorf("-settings: %w", err)
	}
	settings.Role = role
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return run(ctx, settings, *url, *dir, *name, stdin)
}

func run(ctx context.Context, s workload.Settings, url, dir, name string, stdin io.Reader) (err error) {
	log, err := history.Create(dir, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	plain, err := open.URL(ctx, url)
	if err != nil {
		return err
	}
	broker, err := ferry.New(victim.Wrap(plain.Driver(), log, victim.NewHarm(), false), ferry.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close(context.WithoutCancel(ctx))) }()
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() { log.Watch(watching, name, max(s.Lease/4, 250*time.Millisecond)) })
	defer watch.Wait()
	defer unwatch()
	habits := &workload.Habits{}
	go listen(stdin, habits) // ends with the process, or when the harness closes the pipe
	return s.Run(ctx, broker, log, habits, nil)
}

func listen(stdin io.Reader, habits *workload.Habits) {
	for lines := bufio.NewScanner(stdin); lines.Scan(); {
		switch w := strings.Fields(lines.Text()); {
		case len(w) == 3 && w[0] == "begin":
			_, _ = habits.Begin(w[1], w[2]) // checked by the harness before it was sent
		case len(w) == 2 && w[0] == "end":
			_, _ = habits.End(w[1])
		}
	}
}

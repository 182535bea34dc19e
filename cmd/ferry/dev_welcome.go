package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// place says which broker it is, without secrets.
func (o devOptions) place(b *ferry.Broker) string {
	if o.inside != "" {
		return o.inside
	}
	if name := brokerName(b); name != "disk://" || o.dir == "" {
		return name
	}
	return o.broker // a directory is no secret
}

// welcome says what runs, what was there before, and what to type next. It claims nothing that does not exist.
func (o devOptions) welcome(ctx context.Context, t *terminal, b *ferry.Broker, s *devServer) error {
	ok := t.green("✓")
	t.printf("  %s broker   %s\n", ok, o.place(b))
	t.printf("             %s\n", t.dim(o.survival(b)))
	stats, err := allStats(ctx, b.Driver())
	if err != nil {
		return err
	}
	if found := recovered(stats); found != "" {
		t.printf("  %s found    %s\n", ok, found)
	}
	if o.noDemo {
		t.printf("  %s demo     off\n", t.dim("-"))
	} else {
		t.printf("  %s demo     orders %v/s, mails %v/s, a report every 10s   %s\n", ok, o.rate, o.rate/4,
			t.dim("--no-demo to skip"))
		t.printf("             %s\n", t.dim("3 % fail: most succeed when retried, some end dead"))
		t.printf("  %s alerts   one fires while orders are retried, and resolves\n", ok)
	}
	s.welcome(t)
	until := "Ctrl-C"
	if o.duration > 0 {
		until = o.duration.String() + " or Ctrl-C"
	}
	t.printf("  %s running  until %s\n", ok, until)
	if broker := o.reachableMeanwhile(b); broker != "" {
		t.printf("  %s next     in another terminal: ferry topic ls%s\n", t.dim("→"), broker)
	} else if s != nil {
		t.printf("  %s next     in another terminal: export FERRY_TOKEN=... (the token above)\n", t.dim("→"))
		t.printf("             ferry topic ls --broker %s\n", s.brokerURL())
	}
	t.printf("\n")
	return nil
}

func (o devOptions) survival(b *ferry.Broker) string {
	if o.inside != "" {
		return "for development: inside this process, nothing survives its end"
	}
	return "a publish survives: " + b.Driver().Capabilities().Durability.String()
}

// recovered tells what a broker held before anything was done here, or nothing.
func recovered(stats []driver.TopicStats) string {
	var ready, later, dead int64
	for _, st := range stats {
		later += st.Delayed + st.Held
		for _, g := range st.Groups {
			ready += g.Ready + g.Inflight
			later += g.Waiting
			dead += g.Dead
		}
	}
	if ready+later+dead == 0 {
		return ""
	}
	return fmt.Sprintf("from before: %d to handle now, %d later, %d dead letters", ready, later, dead)
}

// reachableMeanwhile returns the --broker flag with which another process reaches this broker while it runs, with a
// space before it; nothing where none does. A URL that may hold a secret is not repeated.
func (o devOptions) reachableMeanwhile(b *ferry.Broker) string {
	switch {
	case o.inside != "":
		return " --broker " + o.inside
	case b.Driver().Capabilities().Local || strings.HasPrefix(o.place(b), "disk:"):
		return ""
	}
	return " --broker ..."
}

// afterwards says how to look at what is left.
func (o devOptions) afterwards(t *terminal, b *ferry.Broker) {
	var where string
	switch place := o.place(b); {
	case o.inside != "" || b.Driver().Capabilities().Local:
		return // it is gone
	case strings.HasPrefix(place, "disk:"):
		where = " --broker " + place
	default:
		where = " --broker ..."
	}
	t.printf("\n%s\n", t.bold("what next"))
	for _, line := range [...][2]string{
		{"ferry dlq ls --group-by error", "what failed for good, and why"},
		{"ferry dlq retry " + demoOrders + " --all", "try it again"},
		{"ferry topic show " + demoOrders, "where every message is"},
	} {
		t.printf("  %s%s\n      %s\n", line[0], where, t.dim(line[1]))
	}
}

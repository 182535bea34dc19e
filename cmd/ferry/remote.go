package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// remote is what every command on a broker outside this process has: --broker and --output.
type remote struct {
	process
	url    string
	format string
	begins bool // it may be the first to use a broker; the others look at one, or change it
}

// newRemote adds the flags to a command, and the check of its arguments.
func newRemote(p process, c *cobra.Command) *remote {
	r := &remote{process: p}
	c.Args = asUsed
	c.Flags().StringVar(&r.url, "broker", "", "URL of the broker; one with a password belongs in FERRY_BROKER or "+
		"FERRY_BROKER_FILE")
	c.Flags().StringVar(&r.format, "output", formatTable, "table, json or ndjson")
	return r
}

// groupFlag adds --group.
func groupFlag(f *pflag.FlagSet, group *string, what string) {
	f.StringVar(group, "group", "", what)
}

// session is an open broker, for one command.
type session struct {
	*remote
	broker *ferry.Broker
	driver driver.Driver // sees bodies as they were published
	faults *undoFaults
}

// with opens the broker, lets work use it, and closes it.
func (r *remote) with(ctx context.Context, work func(s session) error) (err error) {
	if err := oneOf("output", r.format, formatTable, formatJSON, formatNDJSON); err != nil {
		return err
	}
	url, err := r.reachable()
	if err != nil {
		return err
	}
	if !r.begins {
		url = existing(url)
	}
	filters, err := r.filters()
	if err != nil {
		return err
	}
	broker, err := r.open(ctx, url, ferry.Options{Logger: quiet, Filters: filters})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close(context.WithoutCancel(ctx))) }()
	plain := plainDriver{broker.Driver(), broker, new(undoFaults)}
	defer plain.faults.note(r)
	return work(session{remote: r, broker: broker, driver: plain, faults: plain.faults})
}

// existing makes a URL refuse a directory without a store, so that a typing error does not make one.
func existing(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	if !strings.EqualFold(scheme, "disk") || strings.Contains(rest, "create=") {
		return url
	}
	if strings.Contains(rest, "?") {
		return url + "&create=false"
	}
	return url + "?create=false"
}

const brokerHint = "set FERRY_BROKER to its URL, redis://localhost:6379 for example; one with a password may be in a " +
	"file: FERRY_BROKER_FILE"

// reachable returns the URL of a broker that others can reach too. One inside this process would be born empty and die
// with the command.
func (r *remote) reachable() (string, error) {
	url, err := r.given()
	if err != nil {
		return "", err
	}
	if r.url != "" && hasPassword(url) && slices.ContainsFunc(r.args,
		func(arg string) bool { return strings.Contains(arg, r.url) }) {
		r.notef("note: others on this machine can read the password on your command line; FERRY_BROKER or " +
			"FERRY_BROKER_FILE keep it to you")
	}
	if scheme, _, _ := strings.Cut(url, ":"); strings.EqualFold(scheme, "memory") {
		return "", driver.NewError(driver.ErrUnsupported, "a memory:// broker lives inside one process, and this one would "+
			"be empty",
			"run 'ferry dev' to see one at work, or "+brokerHint, nil)
	}
	return url, nil
}

// given returns the URL of --broker or FERRY_BROKER, or else that of the context in use.
func (r *remote) given() (string, error) {
	if r.url != "" {
		return withScheme(r.url), nil
	}
	url, err := r.currentBroker()
	if err == nil && url == "" {
		err = usage("no broker is given", brokerHint)
	}
	return url, err
}

// hasPassword tells of a URL whether it looks as if it had one.
func hasPassword(url string) bool {
	_, rest, _ := strings.Cut(url, "://")
	user, _, found := strings.Cut(rest, "@")
	return found && strings.Contains(user, ":")
}

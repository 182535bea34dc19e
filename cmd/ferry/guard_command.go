package main

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	guardredis "github.com/ferrymq/ferry/guard/redis"
	"github.com/ferrymq/ferry/open"
)

const storeHelp = `Guards keep their state in a store of their own: --store redis://host/0?prefix=ferry reaches what all
processes share, and a change holds in all of them at once. --store disk:///dir is the directory of
a guard.OpenDir store, which one process owns at a time: stop it first, or let it use Redis. A memory
store is inside its process; no command reaches it.

Every change needs a --reason, and is kept with who made it in the audit list of the store.`

// guardCommand is what every command on a guard store has.
type guardCommand struct {
	*remote
	actor, reason string
}

func newGuardCommand(p process, c *cobra.Command, changes bool) *guardCommand {
	d := &guardCommand{remote: &remote{process: p}}
	c.Args = asUsed
	c.Flags().StringVar(&d.url, "store", "", "URL of the guard store; one with a password belongs in FERRY_STORE or "+
		"FERRY_STORE_FILE")
	c.Flags().StringVar(&d.format, "output", formatTable, "table, json or ndjson")
	if changes {
		c.Flags().StringVar(&d.reason, "reason", "", "why; the audit list keeps it")
		c.Flags().StringVar(&d.actor, "actor", "", "who; default: the user of this system")
		onlyOnCommandLine(c.Flags(), "reason")
	}
	return d
}

// with opens the store, lets work use it, and closes it.
func (d *guardCommand) with(ctx context.Context, work func(a *guard.Admin) error) (err error) {
	if err := oneOf("output", d.format, formatTable, formatJSON, formatNDJSON); err != nil {
		return err
	}
	store, err := d.openStore(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(context.WithoutCancel(ctx))) }()
	admin, err := guard.NewAdmin(store, cmp.Or(d.actor, systemUser(d.env)))
	if err != nil {
		return err
	}
	return work(admin)
}

const storeHint = "use --store redis://localhost:6379, --store disk:///dir or --store ferry://localhost:7070; one " +
	"with a password may be in FERRY_STORE, or in a file: FERRY_STORE_FILE"

// openStore chooses the store by the scheme of its URL.
func (d *guardCommand) openStore(ctx context.Context) (guard.Store, error) {
	if d.url == "" {
		return nil, usage("no guard store is given", storeHint)
	}
	if hasPassword(d.url) && slices.ContainsFunc(d.args, func(arg string) bool { return strings.Contains(arg, d.url) }) {
		d.notef("note: others on this machine can read the password on your command line; FERRY_STORE or FERRY_STORE_FILE " +
			"keep it to you")
	}
	scheme, rest, _ := strings.Cut(withScheme(d.url), "://")
	switch base, _, _ := strings.Cut(strings.ToLower(scheme), "+"); base {
	case "memory":
		return nil, driver.NewError(driver.ErrUnsupported, "a memory store lives inside its process, and this one would be "+
			"empty",
			"let the program use a Redis store, or a directory while it does not run", nil)
	case "disk":
		return openGuardDir(rest)
	case "redis", "rediss":
		address, prefix, err := cutPrefixParameter(d.url)
		if err != nil {
			return nil, err
		}
		return guardredis.Open(ctx, guardredis.Options{URL: address, Prefix: prefix})
	case "ferry", "ferrys":
		return open.Guards(ctx, d.url)
	}
	return nil, usage("the scheme of --store is not known", storeHint)
}

// openGuardDir opens a store that is there: a new one would only look empty, and litter a directory of something else.
func openGuardDir(rest string) (guard.Store, error) {
	dir, err := url.PathUnescape(rest)
	if err != nil || dir == "" {
		return nil, usage("a disk:// store names a directory", storeHint)
	}
	if _, err := os.Stat(filepath.Join(dir, guard.JournalName)); err != nil {
		return nil, driver.NewError(driver.ErrNotFound, "there is no guard store in "+dir,
			"give the directory that the program opens with guard.OpenDir", err)
	}
	return guard.OpenDir(dir, guard.DirOptions{})
}

// cutPrefixParameter takes ?prefix= out of a URL: it is the store's, the rest is the connection's.
func cutPrefixParameter(raw string) (address, prefix string, err error) {
	address, query, found := strings.Cut(raw, "?")
	if !found {
		return raw, "", nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", "", usage("the parameters of --store are malformed", storeHint)
	}
	prefix = values.Get("prefix")
	values.Del("prefix")
	if rest := values.Encode(); rest != "" {
		address += "?" + rest
	}
	return address, prefix, nil
}

// systemUser is who runs the command.
func systemUser(env func(string) (string, bool)) string {
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		if user, _ := env(name); user != "" {
			return user
		}
	}
	return "unknown"
}

// guardChange is what a change says it did.
type guardChange struct {
	Result string `json:"result"`
	Limit  string `json:"limit,omitempty"`
	Key    string `json:"key,omitempty"`
}

func (d *guardCommand) changed(c guardChange) error {
	return d.one(c, func() error {
		if c.Limit == "" {
			return d.sayf("%s %s", c.Result, c.Key)
		}
		return d.sayf("%s key %q of limit %s", c.Result, c.Key, c.Limit)
	})
}

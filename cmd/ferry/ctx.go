package main

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/driver"
)

const ctxLong = `A context is a broker that has a name, so that commands need no FERRY_BROKER: the one that is in use
counts where neither --broker nor FERRY_BROKER says another. It may be a server (ferry://host:7070) with its token.

Contexts lie in ferry/contexts.json of your configuration directory ($XDG_CONFIG_HOME, or .config in your
home), tokens in files beside it. Only you can read them.`

const ctxExample = `  FERRY_BROKER=redis://:secret@db:6379 ferry ctx set prod
  FERRY_TOKEN=ferry_... ferry ctx set dev --broker ferry://127.0.0.1:7070
  ferry ctx use prod
  ferry ctx ls
  ferry ctx rm dev`

func newCtx(p process) *cobra.Command {
	c := newNoun("ctx", "Give brokers names, and choose one for all commands", ctxExample, newCtxSet(p), newCtxUse(p),
		newCtxList(p), newCtxRemove(p))
	c.Long = ctxLong
	return c
}

func newCtxSet(p process) *cobra.Command {
	c := &cobra.Command{Use: "set NAME", Short: "Remember a broker under a name, and use it",
		Long: `Remembers the broker of --broker or FERRY_BROKER, and the token of FERRY_TOKEN, and uses it from now on.
Nothing is opened.`,
		Example: `  FERRY_BROKER_FILE=/run/secrets/broker ferry ctx set prod
  FERRY_TOKEN=ferry_... ferry ctx set dev --broker ferry://127.0.0.1:7070`}
	r := newRemote(p, c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		if err := driver.CheckName("context", args[0]); err != nil {
			return err
		}
		if r.url == "" {
			return usage("no broker is given", brokerHint)
		}
		token, _, err := variable("FERRY_TOKEN", p.env)
		if err != nil {
			return err
		}
		return r.changeContexts(func(all *contexts) error { return all.set(args[0], withScheme(r.url), token) })
	}
	return c
}

func newCtxUse(p process) *cobra.Command {
	c := &cobra.Command{Use: "use NAME", Short: "Use a broker that has a name", Example: "  ferry ctx use prod"}
	r := newRemote(p, c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		return r.changeContexts(func(all *contexts) error { return all.use(args[0]) })
	}
	return c
}

func newCtxRemove(p process) *cobra.Command {
	c := &cobra.Command{Use: "rm NAME", Short: "Forget a broker and its token", Example: "  ferry ctx rm dev"}
	r := newRemote(p, c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		return r.changeContexts(func(all *contexts) error { return all.remove(args[0]) })
	}
	return c
}

// changeContexts changes the file, and says which context is in use then.
func (r *remote) changeContexts(change func(all *contexts) error) error {
	all, err := r.readContexts()
	if err != nil {
		return err
	}
	if err := change(all); err != nil {
		return err
	}
	if err := all.write(); err != nil {
		return err
	}
	v := contextView{Name: all.Current, Current: true, Broker: shownURL(all.Contexts[all.Current])}
	return r.one(v, func() error { return r.sayf("in use: %s", cmp.Or(all.Current, "none")) })
}

// contextView is a context in JSON. It is stable.
type contextView struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	Broker  string `json:"broker"` // without what may be secret
}

var contextColumns = []column[contextView]{
	{title: "", cell: func(v contextView) any {
		if v.Current {
			return "*"
		}
		return ""
	}},
	{title: "context", cell: func(v contextView) any { return v.Name }},
	{title: "broker", cell: func(v contextView) any { return v.Broker }},
}

func newCtxList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls", Short: "List the brokers that have names",
		Example: "  ferry ctx ls\n  ferry ctx ls --output json"}
	r := newRemote(p, c)
	c.RunE = func(*cobra.Command, []string) error {
		all, err := r.readContexts()
		if err != nil {
			return err
		}
		var rows []contextView
		for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
			rows = append(rows, contextView{name, name == all.Current, shownURL(all.Contexts[name])})
		}
		return list(r, contextColumns, rows, "No broker has a name. Give it one: ferry ctx set NAME --broker URL")
	}
	return c
}

// shownURL returns what may be shown of a URL: where it leads to, without user, password and options.
func shownURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		scheme, _, _ := strings.Cut(text, ":")
		return scheme
	}
	if u.Opaque != "" {
		return u.Scheme + ":"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

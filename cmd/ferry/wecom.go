package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/wecom"
)

const wecomLong = `Customer service of WeCom (企业微信客服): a program with a wecom.Pipeline takes its callbacks, pulls its
messages and publishes them. These commands look at that, and ask for pulls; they read the same variables as the
program does: FERRY_WECOM_CORP, FERRY_WECOM_SECRET and so on, or with _FILE behind their names (docs/wecom.md). With
--config they take what is not in a variable, the broker included, from the file of 'ferry serve'.`

const wecomExample = `  ferry wecom check                                   are credentials right, does everything move?
  ferry wecom check --config ferry.yaml               the same of a server
  ferry wecom cursor                                  how far is each account?
  ferry wecom pull wkAJ2GCAAAZSfhHCt7IFSvLKtMPxyJTw   now, without waiting for a callback
  ferry wecom replay wkAJ2GCAAAZSfhHCt7IFSvLKtMPxyJTw from three days ago: only what is missing is published`

func newWeCom(p process) *cobra.Command {
	c := newNoun("wecom", "Check and pull customer service of WeCom", wecomExample,
		newWeComCheck(p), newWeComPull(p), newWeComCursor(p), newWeComReplay(p))
	c.Long = wecomLong
	return c
}

// wecomRemote is a command that needs a pipeline.
type wecomRemote struct {
	*remote
	file string // of ferry serve; empty: none
}

func newWeComRemote(p process, c *cobra.Command) *wecomRemote {
	r := &wecomRemote{remote: newRemote(p, c)}
	c.Flags().StringVar(&r.file, "config", "", "file of a server's configuration, ferry.yaml for example")
	return r
}

// withWeCom opens the broker, and lets work use the pipeline that the variables and the file describe.
func (r *wecomRemote) withWeCom(ctx context.Context, work func(p *wecom.Pipeline, c wecom.Config) error) error {
	f, err := serveOptions{config: r.file}.read()
	if err != nil {
		return err
	}
	r.url = cmp.Or(r.url, f.Broker)
	return r.with(ctx, func(s session) error {
		config, err := wecomConfig(f.WeCom, r.env)
		if err != nil {
			return err
		}
		p, err := wecom.New(s.broker, config, wecom.Options{Logger: quiet})
		if err != nil {
			return err
		}
		defer p.Close()
		return work(p, config)
	})
}

func newWeComCheck(p process) *cobra.Command {
	c := &cobra.Command{Use: "check", Short: "Ask WeCom for a token, and tell how much waits",
		Long: "Checks the configuration, asks WeCom for an access token with it, and tells what waits in the broker and " +
			"which\n" +
			"accounts were not pulled for five polls. No secret is printed. The exit code is 1 if WeCom refuses, or if pulls " +
			"of an\n" +
			"account have stopped.",
		Example: "  ferry wecom check\n  ferry wecom check --output json"}
	r := newWeComRemote(p, c)
	r.begins = true
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.withWeCom(c.Context(), func(p *wecom.Pipeline, config wecom.Config) error {
			if err := p.Client().Check(c.Context()); err != nil {
				return err
			}
			v, err := checkedWeCom(c.Context(), p, config)
			if err != nil {
				return err
			}
			if err := r.one(v, func() error { return r.showWeCom(v) }); err != nil {
				return err
			}
			return v.verdict()
		})
	}
	return c
}

// wecomView is what 'ferry wecom check' tells. It is stable.
type wecomView struct {
	Corp     string           `json:"corp"`
	KeyPairs int              `json:"key_pairs"`
	Accounts int              `json:"accounts"`
	Pulls    int64            `json:"pulls_waiting"`
	Messages map[string]int64 `json:"messages_waiting"` // by group
	Overdue  []cursorView     `json:"overdue"`          // accounts that were not pulled for long, or never
}

// verdict fails if pulls have stopped. What was never pulled may be about to begin.
func (v wecomView) verdict() error {
	for _, c := range v.Overdue {
		if c.Pulled != nil {
			return failure(c.Account+" was last pulled "+textOf(c.Pulled),
				"see that 'ferry serve' or a program with a wecom.Pipeline runs, and what it logs")
		}
	}
	return nil
}

func checkedWeCom(ctx context.Context, p *wecom.Pipeline, c wecom.Config) (wecomView, error) {
	cursors, err := p.Cursors(ctx)
	if err != nil {
		return wecomView{}, err
	}
	accounts := slices.Clone(c.Accounts)
	for _, cursor := range cursors {
		accounts = append(accounts, cursor.Account)
	}
	slices.Sort(accounts)
	overdue, err := p.Overdue(ctx)
	if err != nil {
		return wecomView{}, err
	}
	lag, err := p.Lag(ctx)
	return wecomView{Corp: c.Corp, KeyPairs: len(c.Keys), Accounts: len(slices.Compact(accounts)),
		Pulls: lag.Pulls, Messages: lag.Messages, Overdue: viewCursors(overdue)}, err
}

func (r *remote) showWeCom(v wecomView) error {
	if err := r.sayf("WeCom takes the credentials of %s", v.Corp); err != nil {
		return err
	}
	if v.KeyPairs == 0 {
		r.notef("note: there are no keys for callbacks: FERRY_WECOM_TOKEN and FERRY_WECOM_AES_KEY are not set")
	}
	if err := r.sayf("%d accounts, %d pulls wait", v.Accounts, v.Pulls); err != nil {
		return err
	}
	for _, c := range v.Overdue {
		if c.Pulled == nil {
			r.notef("note: %s was never pulled", c.Account)
		}
	}
	groups := make([]string, 0, len(v.Messages))
	for group := range v.Messages {
		groups = append(groups, group)
	}
	slices.Sort(groups)
	for _, group := range groups {
		if err := r.sayf("%d messages wait for group %s", v.Messages[group], group); err != nil {
			return err
		}
	}
	return nil
}

func newWeComPull(p process) *cobra.Command {
	c := &cobra.Command{Use: "pull ACCOUNT", Short: "Ask for a pull of an account, as a callback does",
		Long: "Lays a pull job of an account (open_kfid) into the broker. The program that runs the pipeline does it; this " +
			"command\n" +
			"does not wait for it.",
		Example: "  ferry wecom pull wkAJ2GCAAAZSfhHCt7IFSvLKtMPxyJTw"}
	r := newWeComRemote(p, c)
	r.begins = true
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.withWeCom(c.Context(), func(p *wecom.Pipeline, _ wecom.Config) error {
			if err := p.Pull(c.Context(), args[0]); err != nil {
				return err
			}
			return r.didWeCom(wecomChange{Account: args[0], Result: "pull asked for"})
		})
	}
	return c
}

func newWeComReplay(p process) *cobra.Command {
	c := &cobra.Command{Use: "replay ACCOUNT", Short: "Pull an account again from an earlier place",
		Long: "Sends the cursor of an account back, to the beginning of the three days that WeCom keeps or to --cursor, " +
			"and asks for\n" +
			"a pull. Messages that were published in the last four days are recognised: only what is missing is published.",
		Example: "  ferry wecom replay wkAJ2GCAAAZSfhHCt7IFSvLKtMPxyJTw\n" +
			"  ferry wecom replay wkAJ2GCAAAZSfhHCt7IFSvLKtMPxyJTw --cursor 4gw7MepFLfgF2VC5npN"}
	r := newWeComRemote(p, c)
	r.begins = true
	var cursor string
	c.Flags().StringVar(&cursor, "cursor", "", "where to begin (default: three days ago)")
	onlyOnCommandLine(c.Flags(), "cursor")
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.withWeCom(c.Context(), func(p *wecom.Pipeline, _ wecom.Config) error {
			if err := p.SetCursor(c.Context(), args[0], cursor); err != nil {
				return err
			}
			if err := p.Pull(c.Context(), args[0]); err != nil {
				return err
			}
			return r.didWeCom(wecomChange{Account: args[0], Result: "replay asked for"})
		})
	}
	return c
}

// wecomChange is what became of a command.
type wecomChange struct {
	Account string `json:"account"`
	Result  string `json:"result"`
}

func (r *remote) didWeCom(c wecomChange) error {
	return r.one(c, func() error { return r.sayf("%s: %s", c.Account, c.Result) })
}

// cursorView is a cursor in JSON. It is stable.
type cursorView struct {
	Account string         `json:"account"`
	Cursor  string         `json:"cursor"`
	Pulled  *jsontime.Time `json:"pulled,omitempty"` // the broker's time of the last pull that succeeded
}

var cursorColumns = []column[cursorView]{
	{title: "account", width: 40, cell: func(v cursorView) any { return v.Account }},
	{title: "pulled", cell: func(v cursorView) any { return textOf(v.Pulled) }},
	{title: "cursor", width: 64, cell: func(v cursorView) any { return v.Cursor }},
}

func newWeComCursor(p process) *cobra.Command {
	c := &cobra.Command{Use: "cursor [ACCOUNT]", Short: "Show how far accounts are pulled, and when they were",
		Example: "  ferry wecom cursor\n  ferry wecom cursor wkAJ2GCAAAZSfhHCt7IFSvLKtMPxyJTw --output json"}
	r := newWeComRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.withWeCom(c.Context(), func(p *wecom.Pipeline, _ wecom.Config) error {
			cursors, err := cursorsOf(c.Context(), p, args)
			if err != nil {
				return err
			}
			return list(r.remote, cursorColumns, viewCursors(cursors), "No account was pulled yet.")
		})
	}
	return c
}

func viewCursors(cursors []wecom.Cursor) []cursorView {
	views := make([]cursorView, len(cursors))
	for i, one := range cursors {
		views[i] = cursorView{Account: one.Account, Cursor: one.Position, Pulled: jsontime.At(one.Pulled)}
	}
	return views
}

func cursorsOf(ctx context.Context, p *wecom.Pipeline, accounts []string) ([]wecom.Cursor, error) {
	if len(accounts) == 0 {
		return p.Cursors(ctx)
	}
	one, err := p.Cursor(ctx, accounts[0])
	return []wecom.Cursor{one}, err
}

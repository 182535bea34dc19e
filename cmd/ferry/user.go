package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/internal/jsontime"
)

const userLong = `A user logs in to a server with a name and a password. Roles: viewer sees everything but bodies,
operator also changes what happens to messages, admin also users and tokens. A role may be for some topics only.

A password comes from the variable FERRY_PASSWORD, a file named by FERRY_PASSWORD_FILE, or standard input
(--password-stdin), never from the command line, which others on the machine can read. Who sets one ends the
sessions of the user. The command works on the broker itself: the first user needs no server.`

const userExample = `  ferry user set ann --role admin --password-stdin < password.txt
  ferry user set bob --role operator --topic 'orders.*'      keeps his password
  ferry user ls
  ferry user disable bob                                     keeps him out; enable lets him in again
  ferry user rm bob`

func newUser(p process) *cobra.Command {
	c := newNoun("user", "Make, list and remove the users of servers", userExample, newUserSet(p), newUserList(p),
		newUserDisable(p), newUserEnable(p), newUserRemove(p))
	c.Long = userLong
	return c
}

// userView is a user in JSON. It is stable.
type userView struct {
	Name     string         `json:"name"`
	Grants   []auth.Grant   `json:"grants"`
	Disabled bool           `json:"disabled,omitempty"`
	Set      *jsontime.Time `json:"password_set,omitempty"`
}

func viewUser(u auth.User) userView {
	return userView{u.Name, u.Grants, u.Disabled, jsontime.At(u.Set)}
}

var userColumns = []column[userView]{
	{title: "name", cell: func(v userView) any { return v.Name }},
	{title: "roles", width: 64, cell: func(v userView) any {
		var roles []string
		for _, g := range v.Grants {
			role := string(g.Role)
			if len(g.Topics) > 0 {
				role += " of " + strings.Join(g.Topics, " ")
			}
			roles = append(roles, role)
		}
		if v.Disabled {
			roles = append(roles, "disabled")
		}
		return strings.Join(roles, ", ")
	}},
	{title: "password set", cell: func(v userView) any { return textOf(v.Set) }},
}

func newUserSet(p process) *cobra.Command {
	c := &cobra.Command{Use: "set NAME", Short: "Make a user, or change its role or password", Long: userLong,
		Example: `  ferry user set ann --role admin --password-stdin < password.txt
  FERRY_PASSWORD_FILE=/run/secrets/ann ferry user set ann --role admin
  ferry user set bob --role operator --topic 'orders.*'`}
	r := newRemote(p, c)
	r.begins = true
	var role string
	var topics []string
	var stdin bool
	c.Flags().StringVar(&role, "role", "", "viewer, operator or admin")
	c.Flags().StringSliceVar(&topics, "topic", nil,
		"patterns of topics that the role is for, orders.* for example (default: all)")
	c.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from standard input")
	onlyOnCommandLine(c.Flags(), "role", "password-stdin")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := oneOf("role", role, string(auth.Viewer), string(auth.Operator),
			string(auth.Administrator)); err != nil {
			return err
		}
		password, err := p.password(stdin)
		if err != nil {
			return err
		}
		u := auth.User{Name: args[0], Grants: []auth.Grant{{Role: auth.Role(role), Topics: topics}}}
		return r.with(c.Context(), func(s session) error { return s.setUser(c.Context(), u, password) })
	}
	return c
}

// password reads the password of a user, from where nobody else can see it. It may be empty.
func (p process) password(stdin bool) (auth.Secret, error) {
	text, found, err := variable("FERRY_PASSWORD", p.env)
	if err != nil || !stdin {
		return auth.NewSecret(text), err
	}
	if found {
		return auth.Secret{}, usage("FERRY_PASSWORD and --password-stdin are both given", "use one of them")
	}
	line, err := io.ReadAll(io.LimitReader(p.in, auth.MaxPassword+3)) // and the end of the line
	if err != nil {
		return auth.Secret{}, err
	}
	return auth.NewSecret(strings.TrimRight(string(line), "\r\n")), nil
}

func (s session) setUser(ctx context.Context, u auth.User, password auth.Secret) error {
	users := auth.NewUsers(s.broker)
	_, err := users.Get(ctx, u.Name)
	if errors.Is(err, ferry.ErrNotFound) && password.Empty() {
		return usage("a new user needs a password", "use --password-stdin, FERRY_PASSWORD or FERRY_PASSWORD_FILE")
	}
	err = act(ctx, s.broker, auth.Action{What: "user.set", Detail: u.Name}, func(ctx context.Context) error {
		return users.Put(ctx, u, password)
	})
	if err != nil {
		return err
	}
	if u, err = users.Get(ctx, u.Name); err != nil {
		return err
	}
	return s.one(viewUser(u), func() error { return s.sayf("%s is set", u.Name) })
}

func newUserList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls", Short: "List the users", Example: "  ferry user ls\n  ferry user ls --output json"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.with(c.Context(), func(s session) error { return s.listUsers(c.Context()) })
	}
	return c
}

func (s session) listUsers(ctx context.Context) error {
	l := newListing(s.remote, userColumns)
	users := auth.NewUsers(s.broker)
	for cursor := ""; ; {
		p, err := users.List(ctx, cursor, 0)
		if err != nil {
			return err
		}
		for _, u := range p.Users {
			if err := l.add(viewUser(u)); err != nil {
				return err
			}
		}
		if cursor = p.Next; cursor == "" {
			return l.end("There are no users. Make one: ferry user set NAME --role admin --password-stdin")
		}
	}
}

func newUserRemove(p process) *cobra.Command {
	c := &cobra.Command{Use: "rm NAME", Short: "Remove a user, and end its sessions", Example: "  ferry user rm bob"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			err := s.changeUser(c.Context(), "user.remove", args[0], (*auth.Users).Delete)
			if err != nil {
				return err
			}
			return s.one(struct {
				Removed string `json:"removed"`
			}{args[0]}, func() error { return s.sayf("%s is removed", args[0]) })
		})
	}
	return c
}

// changeUser does something to a user, and records it.
func (s session) changeUser(ctx context.Context, what, name string,
	change func(*auth.Users, context.Context, string) error) error {
	return act(ctx, s.broker, auth.Action{What: what, Detail: name}, func(ctx context.Context) error {
		return change(auth.NewUsers(s.broker), ctx, name)
	})
}

func newUserDisable(p process) *cobra.Command {
	c := &cobra.Command{Use: "disable NAME", Short: "Keep a user out, and end its sessions",
		Example: "  ferry user disable bob"}
	return switchUser(p, c, "user.disable", "%s is disabled", (*auth.Users).Disable)
}

func newUserEnable(p process) *cobra.Command {
	c := &cobra.Command{Use: "enable NAME", Short: "Let a user log in again", Example: "  ferry user enable bob"}
	return switchUser(p, c, "user.enable", "%s is enabled", (*auth.Users).Enable)
}

// switchUser makes a command that changes a user, and shows it then.
func switchUser(p process, c *cobra.Command, what, said string,
	change func(*auth.Users, context.Context, string) error) *cobra.Command {
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			if err := s.changeUser(c.Context(), what, args[0], change); err != nil {
				return err
			}
			u, err := auth.NewUsers(s.broker).Get(c.Context(), args[0])
			if err != nil {
				return err
			}
			return s.one(viewUser(u), func() error { return s.sayf(said, u.Name) })
		})
	}
	return c
}

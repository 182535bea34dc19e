package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/transaction"
)

const transactionLong = `A transaction publishes messages to several topics, all or none. Its halves lie in their
topics, and nobody sees them before it is committed. If its producer vanishes, a transaction.Resolver of any program
asks whether the work was done, and rolls it back when its time is over. Here it is decided by hand. A decision
stands: deciding otherwise is refused.`

const transactionExample = `  ferry transaction ls
  ferry transaction show 0197e7f0-5cf3-7c7e-a1a0-4d2f1f6e2a11
  ferry transaction commit 0197e7f0-5cf3-7c7e-a1a0-4d2f1f6e2a11
  ferry transaction rollback 0197e7f0-5cf3-7c7e-a1a0-4d2f1f6e2a11`

func newTransaction(p process) *cobra.Command {
	c := newNoun("transaction", "List, show, commit and roll back transactions", transactionExample, newTransactionList(p),
		newTransactionShow(p),
		newTransactionDecision(p, "commit ID", "Publish all halves of a transaction", transaction.Commit),
		newTransactionDecision(p, "rollback ID", "Delete all halves of a transaction", transaction.Rollback))
	c.Long = transactionLong
	return c
}

// transactionView is a transaction in JSON. It is stable.
type transactionView struct {
	ID      string            `json:"id"`
	State   string            `json:"state"`
	By      string            `json:"by,omitempty"`
	Done    bool              `json:"done"`
	Kind    string            `json:"kind,omitempty"`
	Subject string            `json:"subject,omitempty"`
	Count   int               `json:"count"`
	Written *jsontime.Time    `json:"written,omitempty"`
	TTL     jsontime.Duration `json:"ttl,omitempty"`
	Halves  []halfView        `json:"halves,omitempty"`
}

type halfView struct {
	Topic string            `json:"topic"`
	ID    string            `json:"id"`
	Delay jsontime.Duration `json:"delay,omitempty"`
}

func viewTransaction(t transaction.Transaction) transactionView {
	v := transactionView{ID: t.ID, State: string(t.State), By: t.By, Done: t.Done, Kind: t.Kind, Subject: t.Subject,
		Count: t.Count, Written: jsontime.At(t.Written), TTL: jsontime.Duration(t.TTL)}
	for _, h := range t.Halves {
		v.Halves = append(v.Halves, halfView{h.Topic, h.ID, jsontime.Duration(h.Delay)})
	}
	return v
}

var transactionColumns = []column[transactionView]{
	{title: "transaction", cell: func(v transactionView) any { return v.ID }},
	{title: "state", cell: func(v transactionView) any { return v.State }},
	{title: "by", cell: func(v transactionView) any { return v.By }},
	{title: "kind", width: 24, cell: func(v transactionView) any { return v.Kind }},
	{title: "subject", width: 32, cell: func(v transactionView) any { return v.Subject }},
	{title: "halves", cell: func(v transactionView) any { return v.Count }},
	{title: "written", cell: func(v transactionView) any { return textOf(v.Written) }},
}

func newTransactionList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls", Short: "List transactions that are open, or decided and not done",
		Example: "  ferry transaction ls\n  ferry transaction ls --output json"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.with(c.Context(), func(open session) error { return r.listTransactions(c.Context(), open.broker) })
	}
	return c
}

func (r *remote) listTransactions(ctx context.Context, b *ferry.Broker) error {
	l := newListing(r, transactionColumns)
	for q := (transaction.Query{Limit: 1000}); ; {
		p, err := transaction.List(ctx, b, q)
		if err != nil {
			return err
		}
		for _, t := range p.Transactions {
			if err := l.add(viewTransaction(t)); err != nil {
				return err
			}
		}
		if q.Cursor = p.Next; p.Next == "" {
			return l.end("No transaction is open.")
		}
	}
}

func newTransactionShow(p process) *cobra.Command {
	c := &cobra.Command{Use: "show ID", Short: "Show a transaction and its halves; one that is done for ten minutes",
		Example: "  ferry transaction show 0197e7f0-5cf3-7c7e-a1a0-4d2f1f6e2a11"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(open session) error {
			t, err := transaction.Get(c.Context(), open.broker, args[0])
			if err != nil {
				return err
			}
			return r.tellTransaction(t)
		})
	}
	return c
}

func newTransactionDecision(p process, use, short string, decide func(context.Context, *ferry.Broker,
	string) (transaction.Transaction, error)) *cobra.Command {
	word := use[:len(use)-len(" ID")]
	c := &cobra.Command{Use: use, Short: short, Long: short + `, for a producer that vanished.
It stands once it is decided: a producer that comes back is told so, and deciding otherwise is refused.
Deciding the same again changes nothing, and ends what was not ended.`,
		Example: "  ferry transaction " + word + " 0197e7f0-5cf3-7c7e-a1a0-4d2f1f6e2a11"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(open session) error {
			t, err := decide(c.Context(), open.broker, args[0])
			if err != nil {
				return err
			}
			return r.tellTransaction(t)
		})
	}
	return c
}

// tellTransaction prints everything about a transaction.
func (r *remote) tellTransaction(t transaction.Transaction) error {
	v := viewTransaction(t)
	return r.one(v, func() error {
		lines := [][2]string{{"by", v.By}, {"kind", v.Kind}, {"subject", v.Subject}, {"written", textOf(v.Written)},
			{"ttl", nonzero(v.TTL)}}
		if err := r.sayf("%s  %s, %s", v.ID, v.State, halvesOf(v.Count)); err != nil {
			return err
		}
		for _, h := range v.Halves {
			lines = append(lines, [2]string{"half", h.Topic + "  " + h.ID + "  " + nonzero(h.Delay)})
		}
		for _, l := range lines {
			if l[1] == "" {
				continue
			}
			if err := r.sayf("  %-9s %s", l[0], l[1]); err != nil {
				return err
			}
		}
		return nil
	})
}

func halvesOf(n int) string {
	if n == 1 {
		return "1 half"
	}
	return fmt.Sprintf("%d halves", n)
}

package main

import (
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/transaction"
)

// Transactions are listed, shown and decided by hand; deciding otherwise is refused with a hint.
func TestTransactions(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.has(d.ok("transaction", "ls"), "No transaction is open.")
	b, err := ferry.New(d.driver, ferry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	begin := func() string {
		tx, err := transaction.Begin(b, transaction.Options{Kind: "orders", Subject: "order 17"})
		if err == nil {
			_, err = tx.Publish(t.Context(), &ferry.Message{Topic: "bills"}, &ferry.Message{Topic: "parcels"})
		}
		if err != nil {
			t.Fatal(err)
		}
		return tx.ID()
	}
	good, bad := begin(), begin()
	d.has(d.ok("transaction", "ls"), good, bad, "orders", "order 17", "open")
	d.has(d.ok("transaction", "show", good), "open, 2 halves", "subject   order 17", "half      bills",
		"half      parcels", "ttl       1h0m0s")
	d.has(d.ok("transaction", "commit", good), "committed, 2 halves", "by        operator")
	d.has(d.ok("transaction", "rollback", bad, "--output", "json"), `"state": "rolled_back"`, `"done": false`)
	if got := d.ok("msg", "ls", "bills", "--output", "ndjson"); strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
	d.fails(exitFailure, "it was committed by the operator", "transaction", "rollback", good)
	d.fails(exitFailure, "it was rolled back by the operator", "transaction", "commit", bad)
	d.fails(exitNotFound, "there is no transaction nope", "transaction", "show", "nope")
}

// Package outbox publishes messages that are rows of a SQL table, written in the transaction of the work that they tell
// of. So there is a message if and only if the work was committed.
//
//	err := inTransaction(db, func(tx *sql.Tx) error {
//		if _, err := tx.ExecContext(ctx, "UPDATE orders SET paid = true WHERE id = $1", id); err != nil {
//			return err
//		}
//		m, err := ferry.NewMessage(ctx, broker, "payments", Paid{Order: id}, ferry.Key(id))
//		if err != nil {
//			return err
//		}
//		return outbox.Insert(ctx, tx, m)
//	})
//
// A [Relay] publishes the rows, in any number of processes of which one works at a time, and removes them after the
// broker has acknowledged them. The table is made by [Schema], for PostgreSQL and SQLite. The package needs
// database/sql only; the driver of the database is the program's.
//
// docs/transactions.md says what is exact.
package outbox

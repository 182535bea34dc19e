// Command outbox writes an order and the message about it in one transaction of a database, and relays it: there is a
// message if and only if there is an order. It uses SQLite; with PostgreSQL the driver, the dialect and the address
// change.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/outbox"
	"github.com/ferrymq/ferry/worker"
)

// Ordered is what the message tells.
type Ordered struct{ Item string }

var errSoldOut = errors.New("sold out")

func main() {
	ctx, stop := context.WithCancel(context.Background())
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())
	dir, err := os.MkdirTemp("", "outbox")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db := database(ctx, filepath.Join(dir, "shop.db"))
	defer func() { _ = db.Close() }()

	for _, item := range []string{"boat", "moon", "rope"} {
		if err := order(ctx, broker, db, item); err != nil {
			fmt.Printf("%s: %v\n", item, err)
		}
	}

	relay, err := outbox.New(broker, db, outbox.Options{Name: "shop", Dialect: outbox.SQLite})
	if err != nil {
		log.Fatal(err)
	}
	told := make(chan string)
	w := worker.New(broker, worker.Options{})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[Ordered]) error {
		told <- m.Value.Item
		return nil
	})
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { must(relay.Run(ctx)) })
	running.Go(func() { must(w.Run(ctx)) })
	for range 2 {
		fmt.Println("ship", <-told)
	}
}

// order writes an order and its message, or neither.
func order(ctx context.Context, b *ferry.Broker, db *sql.DB, item string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing, once it is committed
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (item) VALUES ($1)", item); err != nil {
		return err
	}
	m, err := ferry.NewMessage(ctx, b, "orders", Ordered{Item: item}, ferry.Key("shop"))
	if err != nil {
		return err
	}
	if err := outbox.Insert(ctx, tx, m); err != nil {
		return err
	}
	if item == "moon" {
		return errSoldOut
	}
	return tx.Commit()
}

// database opens a database with the table of orders and the outbox.
func database(ctx context.Context, file string) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	must(err)
	schema, err := outbox.Schema(outbox.SQLite)
	must(err)
	_, err = db.ExecContext(ctx, "CREATE TABLE orders (item text); "+schema)
	must(err)
	return db
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

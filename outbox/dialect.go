package outbox

import (
	"fmt"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Table is the name of the table.
const Table = "ferry_outbox"

// Dialect is the SQL of a database. There is no default.
type Dialect uint8

// The databases that there are dialects of.
const (
	PostgreSQL Dialect = iota + 1
	SQLite
)

// dialects are what differs between databases. Values are given as $1, $2, each once and in this order: all drivers of
// both understand that.
var dialects = map[Dialect]struct{ name, seq, bytes, insertedAt, age string }{
	PostgreSQL: {
		name: "postgresql", seq: "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", bytes: "bytea",
		insertedAt: "timestamptz NOT NULL DEFAULT now()",
		age:        "CAST(EXTRACT(EPOCH FROM now() - min(inserted_at)) AS double precision)",
	},
	SQLite: {
		// a number that was given is never given again
		name: "sqlite", seq: "INTEGER PRIMARY KEY AUTOINCREMENT", bytes: "blob",
		insertedAt: "text NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
		age:        "(julianday('now') - julianday(min(inserted_at))) * 86400",
	},
}

// String returns "postgresql" or "sqlite".
func (d Dialect) String() string {
	if known, ok := dialects[d]; ok {
		return known.name
	}
	return fmt.Sprintf("dialect(%d)", uint8(d))
}

func (d Dialect) check() error {
	if _, ok := dialects[d]; ok {
		return nil
	}
	return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("there is no %v", d),
		"use outbox.PostgreSQL or outbox.SQLite", nil)
}

// Schema returns the statements that make the table, for your migrations. Run again they change nothing. Other
// languages may write rows too: id, topic and body are enough, and docs/transactions.md tells of the other columns.
func Schema(d Dialect) (string, error) {
	if err := d.check(); err != nil {
		return "", err
	}
	of := dialects[d]
	return `CREATE TABLE IF NOT EXISTS ` + Table + ` (
	seq          ` + of.seq + `,
	id           text NOT NULL,
	topic        text NOT NULL,
	key          text NOT NULL DEFAULT '',
	body         ` + of.bytes + ` NOT NULL,
	content_type text NOT NULL DEFAULT '',
	headers      text NOT NULL DEFAULT '',
	options      text NOT NULL DEFAULT '',
	inserted_at  ` + of.insertedAt + `,
	error        text
);
CREATE INDEX IF NOT EXISTS ` + Table + `_failed ON ` + Table + ` (seq) WHERE error IS NOT NULL;
`, nil
}

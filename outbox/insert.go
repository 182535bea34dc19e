package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/uuid7"
)

// Tx is the transaction of the work that messages tell of: a *sql.Tx, or what wraps one.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// insertAtOnce is how many rows one statement writes: SQLite takes 32,766 values.
const insertAtOnce = 1000

// Insert writes messages into the table, in slice order. They are published once tx is committed, under the ids that
// they have; one without an id gets one, which is set in the message. A delay and a TTL count from the publish.
//
// What is wrong with a message whatever the broker is ErrInvalid or ErrTooLarge, and nothing is written. What only the
// broker can say (a body that is too large for it) the relay finds out: see Stats.Failed.
func Insert(ctx context.Context, tx Tx, ms ...*ferry.Message) error {
	if tx == nil {
		return driver.NewError(ferry.ErrInvalid, "the transaction is nil",
			"begin one, and write what the messages tell of in it", nil)
	}
	for i, m := range ms {
		err := check(m)
		if err == nil {
			err = m.Validate(math.MaxInt)
		}
		if err != nil {
			return fmt.Errorf("message %d of %d: %w", i+1, len(ms), err)
		}
	}
	for len(ms) > 0 {
		n := min(len(ms), insertAtOnce)
		if err := insert(ctx, tx, ms[:n]); err != nil {
			return err
		}
		ms = ms[n:]
	}
	return nil
}

// check says why a message is not for an outbox, or nil.
func check(m *ferry.Message) error {
	switch {
	case m == nil:
		return driver.NewError(ferry.ErrInvalid, "the message is nil", "insert messages only", nil)
	case m.Unique != nil:
		return driver.NewError(ferry.ErrInvalid, "the message has a unique id",
			"leave it out: only a publish can be refused because of it, not what is committed", nil)
	case m.Delay == driver.Hold:
		return driver.NewError(ferry.ErrInvalid, "the message would be held",
			"a message of an outbox is published for good", nil)
	}
	return driver.CheckTopic(m.Topic)
}

// insert writes some messages in one statement.
func insert(ctx context.Context, tx Tx, ms []*ferry.Message) error {
	var query strings.Builder
	query.WriteString("INSERT INTO " + Table + " (" + columns + ") VALUES ")
	args := make([]any, 0, len(ms)*columnCount)
	for i, m := range ms {
		if m.ID == "" {
			m.ID = uuid7.New(time.Now())
		}
		row, err := values(m)
		if err != nil {
			return driver.NewError(ferry.ErrInvalid, "a message cannot be stored", "report this", err)
		}
		if i > 0 {
			query.WriteByte(',')
		}
		placeholders(&query, len(args)+1, len(row))
		args = append(args, row...)
	}
	_, err := tx.ExecContext(ctx, query.String(), args...)
	return err
}

// placeholders writes "($1,$2)".
func placeholders(b *strings.Builder, first, n int) {
	for i := range n {
		b.WriteByte("(,"[min(i, 1)])
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(first + i))
	}
	b.WriteByte(')')
}

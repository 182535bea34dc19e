package outbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// read returns the oldest rows that are not set aside, as many as make a batch.
func (r *Relay) read(ctx context.Context) (batch []*row, err error) {
	var query strings.Builder
	query.WriteString("SELECT seq, " + columns + " FROM " + Table + " WHERE error IS NULL")
	waits := r.waits()
	if len(waits) > 0 {
		query.WriteString(" AND topic NOT IN ")
		placeholders(&query, 1, len(waits))
	}
	fmt.Fprintf(&query, " ORDER BY seq LIMIT %d", r.o.Batch)
	rows, err := r.db.QueryContext(ctx, query.String(), waits...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err tells what there is to tell
	for size := 0; size < batchBytes && rows.Next(); {
		next := new(row)
		if err := rows.Scan(next.fields()...); err != nil {
			return nil, err
		}
		size += len(next.msg.Body)
		batch = append(batch, next)
	}
	return batch, rows.Err()
}

// remove deletes the rows that are published, by their numbers and never as a range: a transaction that began earlier
// may commit a row between them.
func (r *Relay) remove(ctx context.Context) error {
	for len(r.acked) > 0 {
		n := min(len(r.acked), maxBatch)
		var query strings.Builder
		query.WriteString("DELETE FROM " + Table + " WHERE seq IN (")
		for i, seq := range r.acked[:n] {
			if i > 0 {
				query.WriteByte(',')
			}
			query.WriteString(strconv.FormatInt(seq, 10))
		}
		query.WriteByte(')')
		if _, err := r.db.ExecContext(ctx, query.String()); err != nil {
			return err
		}
		r.acked = r.acked[:copy(r.acked, r.acked[n:])]
	}
	return nil
}

// removeAtEnd removes what is published also when the relay is told to stop, so that nobody publishes it again.
func (r *Relay) removeAtEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := r.remove(ctx); err != nil {
		r.log.WarnContext(ctx, "rows that are published could not be removed, and are published again", "rows",
			len(r.acked), "error", err)
	}
}

// setAside notes in a row why it cannot be published.
func (r *Relay) setAside(ctx context.Context, failed *row) error {
	text := failed.err.Error()
	// what PostgreSQL takes as a text
	text = strings.ToValidUTF8(strings.ReplaceAll(text[:min(len(text), maxErrorText)], "\x00", ""), "")
	_, err := r.db.ExecContext(ctx, "UPDATE "+Table+" SET error = $1 WHERE seq = $2", text, failed.seq)
	return err
}

// Stats tell how far a relay is.
type Stats struct {
	// Leading says that this process relays, and not another.
	Leading bool
	// Relayed rows of this process, of them Duplicates that the broker had already.
	Relayed, Duplicates uint64
	// Pending rows of the table, the Oldest of which was written this long ago.
	Pending int64
	Oldest  time.Duration
	// Failed rows are set aside: their column error tells why. Set it to NULL to have one tried again.
	Failed int64
}

// Stats asks the table, and tells what this process has done. It counts rows, which takes long where there are very
// many.
func (r *Relay) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	var age *float64
	query := "SELECT count(*), " + dialects[r.o.Dialect].age + " FROM " + Table + " WHERE error IS NULL"
	if err := r.db.QueryRowContext(ctx, query).Scan(&s.Pending, &age); err != nil {
		return s, err
	}
	if age != nil {
		s.Oldest = time.Duration(max(0, *age) * float64(time.Second))
	}
	err := r.db.QueryRowContext(ctx, "SELECT count(*) FROM "+Table+" WHERE error IS NOT NULL").Scan(&s.Failed)
	// Counters are read last: a row that is pending no more is in one of them, because it was counted before it went.
	s.Leading, s.Relayed, s.Duplicates = r.leading.Load(), r.relayed.Load(), r.duplicates.Load()
	return s, err
}

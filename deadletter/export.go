package deadletter

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/internal/letterjson"
)

// Format is how letters are exported.
type Format string

// Formats.
const (
	NDJSON Format = "ndjson" // whole, for Import
	CSV    Format = "csv"    // for spreadsheets: what begins like a formula is put in quotes
)

// ExportReport is what an export wrote.
type ExportReport struct {
	Written int
	// Faulty could not be asked whether they match, and were left out.
	Faulty int
}

// Export writes letters as they are found, without gathering them. What dies meanwhile may be among them.
func (q *Queue) Export(ctx context.Context, w io.Writer, sel Selection, f Format) (ExportReport, error) {
	var x ExportReport
	write, flush, err := writerOf(w, f)
	if err != nil {
		return x, err
	}
	visit := func(l Letter, fault error) (bool, error) {
		if fault != nil {
			x.Faulty++
			return true, nil
		}
		x.Written++
		return true, write(l)
	}
	if len(sel.Only) > 0 {
		err = q.eachOf(ctx, sel, visit)
	} else {
		var s *scan
		if s, err = q.newScan(ctx, sel, ""); err == nil {
			err = s.each(ctx, visit)
		}
	}
	if flushed := flush(); err == nil {
		err = flushed
	}
	return x, err
}

// eachOf visits the letters that were named.
func (q *Queue) eachOf(ctx context.Context, sel Selection, visit func(Letter, error) (bool, error)) error {
	if err := sel.check(); err != nil {
		return err
	}
	for _, t := range sel.Only {
		l, err := q.Get(ctx, t)
		if err != nil {
			return err
		}
		yes, fault := sel.Where.Match(ctx, l)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if yes || fault != nil {
			if _, err := visit(l, fault); err != nil {
				return err
			}
		}
	}
	return nil
}

func writerOf(w io.Writer, f Format) (write func(Letter) error, flush func() error, err error) {
	switch f {
	case NDJSON:
		var line []byte
		return func(l Letter) (err error) {
			if line, err = letterjson.Of(l.From, l.Entry).Append(line[:0]); err == nil {
				_, err = w.Write(line)
			}
			return err
		}, func() error { return nil }, nil
	case CSV:
		c := csv.NewWriter(w)
		if err := c.Write(csvHeader); err != nil {
			return nil, nil, err
		}
		return func(l Letter) error { return c.Write(csvRow(l)) }, func() error { c.Flush(); return c.Error() }, nil
	}
	return nil, nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("format %q does not exist", string(f)),
		"use ndjson or csv", nil)
}

var csvHeader = []string{"topic", "group", "ref", "id", "key", "published_at", "died_at", "reason", "error",
	"fingerprint", "attempts", "deliveries", "rounds",
	"action", "content_type", "body", "problem"}

func csvRow(l Letter) []string {
	f := fieldsOf(l, true)
	row := []string{f.Topic, f.Group, f.Ref, f.ID, f.Key, stamp(f.PublishedAt), stamp(f.DiedAt), f.Reason,
		f.Error, f.Fingerprint,
		strconv.Itoa(f.Attempts), strconv.Itoa(f.Deliveries), strconv.Itoa(f.Rounds), f.Action, f.ContentType,
		f.Body, f.Problem}
	for i := range row {
		row[i] = harmless(row[i])
	}
	return row
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return jsontime.Time{Time: t}.String()
}

// harmless keeps a spreadsheet from taking text for a formula. The apostrophe is not shown there.
func harmless(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
	if t := strings.TrimLeft(s, " \u00a0\ufeff"); t != "" && strings.ContainsRune("=+-@\t\r\n|%＝＋－＠", []rune(t)[0]) {
		return "'" + s
	}
	return s
}

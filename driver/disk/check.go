package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/engine"
)

// mostProblems is how many damaged records Check names; the others are counted.
const mostProblems = 20

const damageHint = "restore the directory from a backup; nothing was changed"

// Check reads a store that no process owns: its log, and every record with its checksum, bodies included, and adds up
// where all messages are. It changes nothing. What is wrong is a finding; an error says why it could not look.
func Check(ctx context.Context, o Options) ([]driver.Finding, error) {
	o, err := o.resolved()
	if err != nil {
		return nil, err
	}
	dir, err := visit(o.fs, o.Dir)
	if err != nil {
		return nil, err
	}
	findings, err := check(ctx, dir)
	return findings, errors.Join(err, dir.leave())
}

func check(ctx context.Context, dir *directory) ([]driver.Finding, error) {
	s := newStore(unlockedFS{dir.fs}, false, slog.New(slog.DiscardHandler))
	s.cache = pebble.NewCache(blockCache)
	defer s.cache.Unref()
	if err := s.refuseDamage(dir); err != nil {
		return []driver.Finding{damageFinding("log", err)}, nil
	}
	var err error
	if s.db, err = s.log.open(dir.data, s.options(true)); err != nil {
		return []driver.Finding{damageFinding("tables", err)}, nil
	}
	findings, err := s.verify(ctx)
	closed := s.closeUnreadable()
	if s.unreadable.Load() {
		closed = nil // what is wrong was found
	}
	return findings, errors.Join(err, closed)
}

func (s *store) verify(ctx context.Context) ([]driver.Finding, error) {
	var findings []driver.Finding
	n := 0
	tally, err := engine.Verify(ctx, s, func(text string) {
		if n++; n <= mostProblems {
			findings = append(findings, driver.Finding{Severity: driver.SeverityError, Subject: "records", Text: text,
				Hint: damageHint})
		}
	})
	if n > mostProblems {
		findings = append(findings, driver.Finding{Severity: driver.SeverityError, Subject: "records",
			Text: fmt.Sprintf("and %d more problems", n-mostProblems), Hint: damageHint})
	}
	text := fmt.Sprintf("%d records with %d messages in %d topics, %d KiB", tally.Records, tally.Messages, tally.Topics,
		tally.Bytes>>10)
	if n == 0 {
		findings = append(findings, driver.Finding{Severity: driver.SeverityOK, Subject: "records",
			Text: text + ": every checksum is right, and every message is accounted for"})
	}
	return findings, err
}

func damageFinding(subject string, err error) driver.Finding {
	f := driver.Finding{Severity: driver.SeverityError, Subject: subject, Text: err.Error(), Hint: damageHint}
	var e *driver.Error
	if errors.As(err, &e) {
		f.Text, f.Hint = e.Text, e.Hint
	}
	return f
}

// visit makes sure that path is a store that no process owns, and keeps it so until the directory is left. Unlike
// enter it changes nothing, and needs no right to write.
func visit(fs vfs.FS, path string) (*directory, error) {
	d, err := at(fs, path)
	if err != nil {
		return nil, err
	}
	fresh, err := d.inspect()
	if err != nil {
		return nil, err
	}
	if fresh {
		return nil, d.errNoStore()
	}
	if err := d.own(os.O_RDONLY); err != nil && !errors.Is(err, os.ErrNotExist) { // a copy that nobody has opened yet
		return nil, err
	}
	return d, nil
}

func (d *directory) errNoStore() error {
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("there is no store in %s", d.path),
		"check the path; a program that opens the broker makes a store, as do ferry dev and ferry pub", nil)
}

// unlockedFS needs no lock of Pebble's: whoever looks has locked the file of the owner, and may have no right to write.
type unlockedFS struct{ vfs.FS }

// Lock does nothing.
func (unlockedFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

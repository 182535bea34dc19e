package kinds

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/operation"
)

// Export writes letters to a file on the machine of the worker. One that is interrupted begins anew; the file is there
// when it is complete.
type Export struct {
	Letters
	// File is the name of the file, without a path: 1 to 128 letters, digits, '.', '_' or '-'. One that is there is
	// replaced.
	File string `json:"file"`
	// Format is deadletter.NDJSON or CSV. Defaults to NDJSON.
	Format deadletter.Format `json:"format,omitempty"`
}

// Request returns what Queue.Submit takes.
func (a Export) Request() operation.Request {
	return operation.Request{Kind: LettersExport, Args: a}
}

// Exports returns the kind of Export, whose files lie in dir and nowhere else.
func Exports(b *ferry.Broker, dir string) operation.Kind {
	return operation.NewKind(LettersExport,
		operation.Work[Export]{Check: Export.check, Run: func(ctx context.Context, t *operation.Task, a Export) error {
			return a.run(ctx, b, t, dir)
		}})
}

func (a Export) check() error {
	sel, err := a.selection()
	if err != nil {
		return err
	}
	if a.Format != "" && a.Format != deadletter.NDJSON && a.Format != deadletter.CSV {
		return invalid(fmt.Sprintf("format %.40q does not exist", string(a.Format)), "use ndjson or csv")
	}
	return errors.Join(driver.CheckName("file", a.File), (deadletter.RemoveOptions{Selection: sel}).Check())
}

func (a Export) run(ctx context.Context, b *ferry.Broker, t *operation.Task, dir string) (err error) {
	sel, err := a.selection()
	if err != nil {
		return err
	}
	queue, err := deadletter.New(b)
	if err != nil {
		return err
	}
	if t.DryRun() {
		report, err := queue.Remove(ctx, deadletter.RemoveOptions{Selection: sel, DryRun: true})
		t.Did(report.Done)
		return err
	}
	f, err := os.CreateTemp(dir, "."+a.File+".*") // only its owner may read it
	if err != nil {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("no file can be made in %s", dir),
			"see whether the directory is there, and who may write to it", err)
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name()) // unless it has its name
	}()
	w := bufio.NewWriter(f)
	report, err := queue.Export(ctx, w, sel, cmp.Or(a.Format, deadletter.NDJSON))
	if err = errors.Join(err, w.Flush()); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close(), os.Rename(f.Name(), filepath.Join(dir, a.File))); err != nil {
		return err
	}
	t.Did(report.Written)
	t.Skip(report.Faulty, errFaulty)
	return nil
}

var errFaulty = errors.New("it could not be asked whether they match")

package spool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/letterjson"
	"github.com/ferrymq/ferry/internal/privatefile"
)

// emergency is the last level: a file for each day, in the form of an export.
type emergency struct {
	dir  string
	busy chan struct{} // one writer at a time
}

func newEmergency(dir string) *emergency {
	return &emergency{dir: dir, busy: make(chan struct{}, 1)}
}

func checkEmergency(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("the directory of the emergency file, %s, does not exist", dir),
			"make it first: nothing can be created when it is needed", err)
	}
	return nil
}

// write appends a message to the file of the day, synced, and returns the name of the file.
func (e *emergency) write(ctx context.Context, m *driver.Message) (string, error) {
	now := time.Now()
	name := filepath.Join(e.dir, "spool-"+now.UTC().Format("20060102")+".jsonl")
	line, err := letterjson.Waiting(m, now).Append(nil)
	if err != nil {
		return name, err
	}
	select {
	case e.busy <- struct{}{}:
	case <-ctx.Done():
		return name, driver.NewError(driver.ErrNotApplied, "others write to the emergency file", "allow more time", ctx.Err())
	}
	defer func() { <-e.busy }()
	if err := privatefile.Append(name, line); err != nil {
		return name, driver.NewError(driver.ErrNotApplied, "the emergency file cannot be written",
			"free space, or check the rights of "+e.dir, err)
	}
	return name, nil
}

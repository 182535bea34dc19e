package disk

import (
	"fmt"
	"log/slog"
	"runtime"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ferrymq/ferry/driver"
)

// fatalLogger turns Pebble's fatal errors, which would end the process, into failures of the store.
type fatalLogger struct {
	log    *slog.Logger
	failed func(error) // nil while Pebble is opened
}

// fatal is what ends an attempt to open Pebble.
type fatal struct{ err error }

// Infof is dropped: Pebble tells much.
func (l *fatalLogger) Infof(string, ...any) {}

// Errorf is passed on.
func (l *fatalLogger) Errorf(format string, args ...any) {
	l.log.Warn("pebble: " + fmt.Sprintf(format, args...))
}

// damage is told of a table that cannot be read.
func (l *fatalLogger) damage(info pebble.DataCorruptionInfo) {
	l.log.Error("a table is damaged: restore the directory from a backup", "file", info.Path, "error", info.Details)
}

// Fatalf must not return, since its caller would go on with a broken state: the calling goroutine ends.
func (l *fatalLogger) Fatalf(format string, args ...any) {
	err := driver.NewError(driver.ErrUnknown, fmt.Sprintf(format, args...), "see to the disk, then open the store again", nil)
	l.log.Error("the store stopped", "error", err)
	if l.failed == nil {
		panic(fatal{err})
	}
	l.failed(err)
	runtime.Goexit()
}

// guard opens Pebble, and returns what is fatal as an error.
func (l *fatalLogger) guard(open func() (*pebble.DB, error)) (db *pebble.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(fatal)
			if !ok {
				panic(p)
			}
			err = f.err
		}
	}()
	return open()
}

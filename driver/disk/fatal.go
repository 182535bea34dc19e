package disk

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// fatalLogger hears what Pebble says, and turns its fatal errors, which would end the process, into failures of the
// store.
type fatalLogger struct {
	log     *slog.Logger
	opening atomic.Bool

	flushFailure atomic.Pointer[error] // of the newest flush; nil: it succeeded
	stalled      atomic.Bool           // a write waits for a flush
	trouble      chan struct{}         // a flush or a compaction failed
	troubled     func()                // is told of that
	failure      *failure
}

// fatal is what Pebble calls so. It is of no kind: that is for whoever tells a caller.
type fatal struct {
	text  string
	cause error
}

// Error returns what Pebble said.
func (f *fatal) Error() string { return f.text }

// Unwrap returns the error of which Pebble spoke.
func (f *fatal) Unwrap() error { return f.cause }

// Infof is dropped: Pebble tells much.
func (l *fatalLogger) Infof(string, ...any) {}

// Errorf is passed on.
func (l *fatalLogger) Errorf(format string, args ...any) {
	l.log.Warn("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf must not return, since its caller would go on with a broken state: the calling goroutine ends.
func (l *fatalLogger) Fatalf(format string, args ...any) {
	f := &fatal{text: fmt.Sprintf(format, args...)}
	for _, a := range args {
		if err, ok := a.(error); ok {
			f.cause = err
		}
	}
	l.fail(f)
	runtime.Goexit()
}

// listener is what Pebble tells of its work.
func (l *fatalLogger) listener() *pebble.EventListener {
	return &pebble.EventListener{
		// by default damage is fatal. Whoever reads it gets an error here, and everything else goes on
		DataCorruption:  l.damage,
		BackgroundError: l.background,
		FlushEnd:        func(i pebble.FlushInfo) { l.flushed(i.Err) },
		WriteStallBegin: func(pebble.WriteStallBeginInfo) { l.stalled.Store(true); l.stopIfStuck() },
		WriteStallEnd:   func() { l.stalled.Store(false) },
	}
}

// damage is told of a table that cannot be read.
func (l *fatalLogger) damage(info pebble.DataCorruptionInfo) {
	l.log.Error("a table is damaged: restore the directory from a backup", "file", info.Path, "error", info.Details)
}

// background is told of a flush or compaction that failed, before Pebble tries again. It does so for ever, and who
// opens a store would wait for it: then it ends here.
func (l *fatalLogger) background(err error) {
	if l.opening.Load() {
		l.fail(err)
		runtime.Goexit()
	}
	l.log.Warn("pebble: what it does in the background failed, and is tried again", "error", err)
	l.troubled()
	signal(l.trouble)
}

func (l *fatalLogger) flushed(err error) {
	if err == nil {
		l.flushFailure.Store(nil)
		return
	}
	l.flushFailure.Store(&err)
	l.stopIfStuck()
}

// stopIfStuck stops the store when a write waits for a flush that fails: nobody knows when it will not.
func (l *fatalLogger) stopIfStuck() {
	if err := l.flushFailure.Load(); err != nil && l.stalled.Load() {
		l.fail(*err)
	}
}

// fail stops the store, or whoever opens it.
func (l *fatalLogger) fail(err error) {
	if l.failure.set(err) {
		l.log.Error("the store stopped", "error", err)
	}
}

// open opens Pebble, and returns as an error what would end the process or never end. If that happens in a goroutine
// of Pebble's own, the one that opens waits for it for ever, and is left behind: nothing of it writes any more.
func (l *fatalLogger) open(dir string, o *pebble.Options) (*pebble.DB, error) {
	l.opening.Store(true)
	defer l.opening.Store(false)
	var db *pebble.DB
	opened := inBackground(func() (err error) { db, err = pebble.Open(dir, o); return err })
	select {
	case err := <-opened:
		if db == nil {
			return nil, cmp.Or(l.failure.get(), err)
		}
		return db, err
	case <-l.failure.stopped:
		return nil, l.failure.get()
	}
}

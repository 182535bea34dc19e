package history

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// Writer appends the events of one process to its file. It is safe for concurrent use, and so are several processes
// on one file.
type Writer struct {
	// Clock stamps the events. Defaults to Now.
	Clock   func() int64
	process string
	file    *os.File
	muted   atomic.Bool
	failed  atomic.Pointer[error]
}

// Create opens the history of a process in dir, and appends if it exists.
func Create(dir, process string) (*Writer, error) {
	name := filepath.Join(dir, process+suffix)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("history of %s: %w", process, err)
	}
	return &Writer{Clock: Now, process: process, file: f}, nil
}

// Discard returns a Writer that writes nothing, for runs that last too long for a history.
func Discard(process string) *Writer {
	w := &Writer{Clock: Now, process: process}
	w.Mute()
	return w
}

// Record stamps the event and appends it with one write. Events of a process keep their order.
func (w *Writer) Record(e Event) {
	if e.Process == "" {
		e.Process = w.process
	}
	w.write(e)
}

func (w *Writer) write(e Event) {
	if w.muted.Load() {
		return
	}
	if e.At == 0 {
		e.At = w.Clock()
	}
	line, err := e.line()
	if err == nil {
		_, err = w.file.Write(line)
	}
	if now := w.Clock(); now-e.At > int64(slowWrite) && e.Note != Stall { // the disk held the process up
		w.stall(w.process, e.At, now)
	}
	if err != nil {
		w.failed.CompareAndSwap(nil, &err)
	}
}

// Mark appends an event of the harness about another process, or about none.
func (w *Writer) Mark(kind Kind, process, note string) {
	w.write(Event{Kind: kind, Process: process, Note: note})
}

// MarkStep appends that the broker's clock is set by so much from now on.
func (w *Writer) MarkStep(step time.Duration) {
	w.write(Event{Kind: KindFault, Note: StepClock, Step: int64(step)})
}

// Mute ends the history as kill -9 would: nothing is written from now on.
func (w *Writer) Mute() { w.muted.Store(true) }

// Process returns the name of the process.
func (w *Writer) Process() string { return w.process }

// Close closes the file, and returns the first error of any write: a history with holes proves nothing.
func (w *Writer) Close() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	if p := w.failed.Load(); p != nil {
		return fmt.Errorf("history of %s: %w", w.process, *p)
	}
	return err
}

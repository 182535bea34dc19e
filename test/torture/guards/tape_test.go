package guards_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// event is one line of the tape. All processes write to one file, each line in one piece, so that its order is the
// order in which things were seen to happen. Times are of the one clock of this machine.
type event struct {
	Process int    `json:"p"`
	Kind    string `json:"e"`
	ID      string `json:"id,omitempty"`
	Key     string `json:"key,omitempty"`
	Seq     int    `json:"seq,omitempty"`
	Ticket  uint64 `json:"ticket,omitempty"`
	// From is before the store was asked, At when it had answered.
	From time.Time `json:"from,omitzero"`
	At   time.Time `json:"at"`
	// Slot and Mark are until when the slot and the mark of a handler are its own for certain, even if nobody renews them.
	Slot time.Time `json:"slot,omitzero"`
	Mark time.Time `json:"mark,omitzero"`
}

// Kinds of events.
const (
	admitted = "admitted" // a limit let a message pass
	returned = "returned" // and is about to take that back
	started  = "started"  // a handler
	done     = "done"     // a handler is about to return nil
	failed   = "failed"   // or an error
	marked   = "marked"   // the work of an id is marked as done
	killed   = "killed"   // a process is about to be
)

// tape is the end of the file that one process writes to.
type tape struct {
	mu   sync.Mutex
	file *os.File
}

func openTape(name string) (*tape, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &tape{file: f}, err
}

func (t *tape) write(e event) {
	if e.Process == 0 {
		e.Process = os.Getpid()
	}
	e.At = time.Now().Round(0)
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // plain data: never
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.file.Write(append(line, '\n')); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func readTape(t *testing.T, name string) (all []event) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		var e event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, s.Bytes())
		}
		all = append(all, e)
	}
	return all
}

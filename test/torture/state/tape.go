package state

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// Kind says what happened.
type Kind string

// Kinds of events.
const (
	kindRunning Kind = "running" // a process is ready
	kindLeads   Kind = "leads"   // it leads, under an epoch
	kindEnded   Kind = "ended"   // the context of its lead has ended
	kindWrite   Kind = "write"   // a write under an epoch was accepted or refused
	kindCall    Kind = "call"    // a write or a read of values begins
	kindAnswer  Kind = "answer"  // and has an outcome
	kindHarm    Kind = "harm"    // the harness begins to harm a process
	kindHeal    Kind = "heal"    // and ends it
	kindStall   Kind = "stall"   // the machine did not let a process run
)

// Event is one line of the tape. Which fields it has follows from its kind.
type Event struct {
	At      int64  `json:"t"` // nanoseconds of one clock for all
	Process string `json:"p"`
	Kind    Kind   `json:"e"`
	Group   int    `json:"g,omitempty"` // of leaders
	Note    string `json:"n,omitempty"`

	Epoch    uint64 `json:"epoch,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	Refused  bool   `json:"refused,omitempty"`
	Late     bool   `json:"late,omitempty"`    // written after its lease, on purpose
	Stalled  int64  `json:"stalled,omitempty"` // until now the machine did not let the process run for so long

	Op    int     `json:"op,omitempty"` // number of a call in its process
	Write *write  `json:"w,omitempty"`  // of a call; nil: a read of Name
	Name  string  `json:"name,omitempty"`
	Err   errKind `json:"err,omitempty"`
	Found *found  `json:"found,omitempty"` // what a read or a conflict showed; nil: nothing was there
}

// tape gathers the events of a run, and wakes whoever waits for them.
type tape struct {
	mu      sync.Mutex
	events  []Event
	changed chan struct{} // closed and replaced with each event
	file    io.WriteCloser
	failed  error
}

// newTape writes a copy to a directory, if one is named.
func newTape(dir string) (*tape, error) {
	t := &tape{changed: make(chan struct{})}
	if dir == "" {
		return t, nil
	}
	f, err := os.Create(filepath.Join(dir, "tape.jsonl"))
	t.file = f
	return t, err
}

func (t *tape) add(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, e)
	close(t.changed)
	t.changed = make(chan struct{})
	if t.file == nil {
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = t.file.Write(append(line, '\n'))
	}
	if t.failed == nil {
		t.failed = err
	}
}

// after returns the events from a number on, and a channel that is closed when there are more.
func (t *tape) after(n int) ([]Event, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.events[n:len(t.events):len(t.events)], t.changed
}

func (t *tape) all() []Event {
	events, _ := t.after(0)
	return events
}

func (t *tape) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return nil
	}
	if err := t.file.Close(); err != nil {
		return err
	}
	if t.failed != nil {
		return fmt.Errorf("the tape is not whole: %w", t.failed)
	}
	return nil
}

package leaders_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// event is one line of the tape: a write that was accepted, at a revision, or refused. All processes write to one file, each line in one piece.
type event struct {
	Process  int    `json:"p"`
	Epoch    uint64 `json:"epoch"`
	Revision uint64 `json:"revision,omitempty"`
	Refused  bool   `json:"refused,omitempty"`
	Late     bool   `json:"late,omitempty"` // written after its lease, on purpose
}

// tape is the end of the file that one process writes to.
type tape struct{ file *os.File }

func openTape(name string) (*tape, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &tape{file: f}, err
}

func (t *tape) write(e event) {
	e.Process = os.Getpid()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = t.file.Write(append(line, '\n'))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func readTape(t *testing.T, name string) (all []event) {
	t.Helper()
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nobody has led yet
	}
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

// verdict is what a tape proves.
type verdict struct {
	epochs, accepted, late int
	problems               []string
}

// judge puts accepted writes into the order in which the store applied them. Their epochs never fall, each is of one process, and no late one is among them.
func judge(all []event) (v verdict) {
	accuse := func(format string, args ...any) { v.problems = append(v.problems, fmt.Sprintf(format, args...)) }
	owner := map[uint64]int{}
	var accepted []event
	for _, e := range all {
		if p, known := owner[e.Epoch]; known && p != e.Process {
			accuse("epoch %d is of processes %d and %d", e.Epoch, p, e.Process)
		}
		owner[e.Epoch] = e.Process
		switch {
		case !e.Refused:
			accepted = append(accepted, e)
		case e.Late:
			v.late++
		}
	}
	slices.SortFunc(accepted, func(a, b event) int { return cmp.Compare(a.Revision, b.Revision) })
	for i, e := range accepted {
		if i > 0 && e.Epoch < accepted[i-1].Epoch {
			accuse("a write of epoch %d was accepted after one of epoch %d, at revision %d", e.Epoch, accepted[i-1].Epoch, e.Revision)
		}
		if i > 0 && e.Revision == accepted[i-1].Revision {
			accuse("revision %d was given twice", e.Revision)
		}
		if e.Late {
			accuse("a late write of epoch %d was accepted", e.Epoch)
		}
	}
	v.epochs, v.accepted = len(owner), len(accepted)
	return v
}

// TestJudgeAccuses: each broken promise is seen, and what may be innocent is not accused.
func TestJudgeAccuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tape []event
		want string
	}{
		"in order":            {[]event{{Process: 1, Epoch: 5, Revision: 6}, {Process: 1, Epoch: 5, Revision: 7}, {Process: 2, Epoch: 8, Revision: 9}}, ""},
		"noted out of order":  {[]event{{Process: 2, Epoch: 8, Revision: 9}, {Process: 1, Epoch: 5, Revision: 7}}, ""},
		"late and refused":    {[]event{{Process: 2, Epoch: 8, Revision: 9}, {Process: 1, Epoch: 5, Refused: true, Late: true}}, ""},
		"older and accepted":  {[]event{{Process: 2, Epoch: 8, Revision: 9}, {Process: 1, Epoch: 5, Revision: 10}}, "after one of epoch 8"},
		"late and accepted":   {[]event{{Process: 1, Epoch: 5, Revision: 10, Late: true}}, "a late write of epoch 5"},
		"an epoch of two":     {[]event{{Process: 1, Epoch: 5, Revision: 6}, {Process: 2, Epoch: 5, Revision: 7}}, "is of processes 1 and 2"},
		"a revision of twice": {[]event{{Process: 1, Epoch: 5, Revision: 6}, {Process: 1, Epoch: 5, Revision: 6}}, "given twice"},
	} {
		got := strings.Join(judge(c.tape).problems, "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

package operation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Work is what operations of one kind do. A is the type of their arguments: plain data, kept as JSON.
type Work[A any] struct {
	// Check says what is wrong with arguments before anything is stored, or nil. May be nil.
	Check func(args A) error
	// Run does the work from the begin, or from Task.Checkpoint on, and tells the Task how far it is. It returns soon when
	// ctx has ended: it was cancelled, its worker stops, or another may take it over. So whatever it does must be harmless
	// when it is done again.
	//
	// An error that wraps ErrInvalid, ErrNotFound, ErrConflict, ErrTooLarge, ErrUnsupported or ErrRefused ends the
	// operation as failed; after any other it is tried again. When Task.DryRun is true it only counts what it would do.
	Run func(ctx context.Context, t *Task, args A) error
}

// Kind is a sort of operation that a Queue knows. NewKind makes one.
type Kind struct {
	name  string
	reads func(args json.RawMessage) bool // without asking what they mean
	check func(args json.RawMessage) error
	run   func(ctx context.Context, t *Task, args json.RawMessage) error
}

// NewKind gives work a name, 1 to 64 letters, digits, '.', '_' or '-', under which it is submitted and known to all
// programs.
func NewKind[A any](name string, w Work[A]) Kind {
	k := Kind{name: name, reads: func(data json.RawMessage) bool {
		_, err := decodeArgs[A](name, data)
		return err == nil
	}}
	k.check = func(data json.RawMessage) error {
		args, err := decodeArgs[A](name, data)
		if err == nil && w.Check != nil {
			err = w.Check(args)
		}
		return err
	}
	if w.Run != nil {
		k.run = func(ctx context.Context, t *Task, data json.RawMessage) error {
			args, err := decodeArgs[A](name, data)
			if err != nil {
				return err
			}
			return w.Run(ctx, t, args)
		}
	}
	return k
}

// Name of the kind.
func (k Kind) Name() string { return k.name }

// decodeArgs reads arguments, and refuses what it does not know: without a field that narrows the work it would do more
// than was asked for.
func decodeArgs[A any](kind string, data json.RawMessage) (args A, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err = d.Decode(&args); err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more than one value")
		}
	}
	if err != nil {
		return args, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("the arguments of kind %q cannot be read: %v", kind, err),
			"see the fields of its arguments; is this program older than the one that submitted it?", nil)
	}
	return args, nil
}

const maxKind = 64 // bytes of a name

// known checks kinds and returns them by name.
func known(kinds []Kind) (map[string]Kind, error) {
	all := make(map[string]Kind, len(kinds))
	for _, k := range kinds {
		if err := driver.CheckName("kind", k.name); err != nil {
			return nil, err
		}
		_, twice := all[k.name]
		switch {
		case len(k.name) > maxKind:
			return nil, driver.NewError(ferry.ErrInvalid,
				fmt.Sprintf("the name of kind %.80q has %d bytes", k.name, len(k.name)),
				fmt.Sprintf("use at most %d", maxKind), nil)
		case twice:
			return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("kind %q is there twice", k.name),
				"name one of them otherwise", nil)
		case k.run == nil:
			return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("kind %q does nothing", k.name),
				"give its Work a function Run", nil)
		}
		all[k.name] = k
	}
	return all, nil
}

// kind returns one that is known.
func (q *Queue) kind(name string) (Kind, error) {
	if k, ok := q.kinds[name]; ok {
		return k, nil
	}
	hint := "give operation.New its kinds"
	if len(q.kinds) > 0 {
		hint = "this program knows " + strings.Join(slices.Sorted(maps.Keys(q.kinds)), ", ")
	}
	return Kind{}, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("there is no kind of operation %.80q", name), hint, nil)
}

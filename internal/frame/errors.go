package frame

import (
	"errors"

	"github.com/ferrymq/ferry/driver"
)

// ErrNoSession is the kind of an error that says that a gateway does not know a session, or no more: the client
// subscribes again.
var ErrNoSession = errors.New("no such session")

// kinds are the sentinel errors in the order of their bits on the wire: new ones go to the end.
var kinds = []error{
	driver.ErrNotApplied, driver.ErrUnknown, driver.ErrFull, driver.ErrTooLarge,
	driver.ErrLeaseLost, driver.ErrNotFound, driver.ErrConflict,
	driver.ErrInvalid, driver.ErrUnsupported, driver.ErrClosed, driver.ErrRefused,
	ErrNoSession,
}

// said is an error of the other side that has no kind and no hint of its own, or what is underneath one that has: its
// text, and the kinds that it is.
type said struct {
	text  string
	kinds []error
}

func (s *said) Error() string   { return s.text }
func (s *said) Unwrap() []error { return s.kinds }

// Err is an error on its way: every kind that it is, so that errors.Is answers alike on both sides, and its texts.
// Other errors underneath, of a library for example, are texts.
type Err struct{ Err error }

// Walk writes or reads the error.
func (e *Err) Walk(w *Walk) { failure(w, &e.Err) }

func failure(w *Walk, err *error) {
	some := *err != nil
	if w.flag(&some); !some {
		clearRead(w, err)
		return
	}
	var what wireError
	if w.mode != reading {
		what = dissected(*err)
	}
	count(w, &what.kinds)
	number(w, &what.main)
	text(w, &what.text)
	text(w, &what.hint)
	text(w, &what.cause)
	if w.mode == reading && w.err == nil {
		*err = what.whole()
	}
}

// wireError is an error as it travels.
type wireError struct {
	kinds             uint64 // one bit for each that it is
	main              int    // which of them Error.Kind is; -1: it is no driver.Error
	text, hint, cause string
}

func dissected(err error) wireError {
	x := wireError{main: -1, text: err.Error()}
	for i, kind := range kinds {
		if errors.Is(err, kind) {
			x.kinds |= 1 << i
		}
	}
	var whole *driver.Error
	if !errors.As(err, &whole) {
		return x
	}
	for i, kind := range kinds {
		if errors.Is(whole.Kind, kind) {
			x.main = i
		}
	}
	x.text, x.hint = whole.Text, whole.Hint
	if whole.Cause != nil {
		x.cause = whole.Cause.Error()
	}
	return x
}

func (x wireError) whole() error {
	var all []error
	for i, kind := range kinds {
		if x.kinds&(1<<i) != 0 {
			all = append(all, kind)
		}
	}
	if x.main < 0 || x.main >= len(kinds) {
		return &said{text: x.text, kinds: all}
	}
	var cause error
	if x.cause != "" || len(all) > 1 {
		cause = &said{text: x.cause, kinds: all}
	}
	return driver.NewError(kinds[x.main], x.text, x.hint, cause)
}

package main

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/compress"
	"github.com/ferrymq/ferry/codec/encrypt"
	"github.com/ferrymq/ferry/driver"
)

// keysVariable has the keys of encrypted bodies. No flag does: a command line is visible to others.
const keysVariable = "FERRY_ENCRYPTION_KEYS"

// filters are those of the command: it reads whatever is compressed, and with keys it decrypts, and encrypts what it
// publishes.
func (p process) filters() ([]codec.Filter, error) {
	compressed, err := compress.New(compress.Options{Algorithm: compress.None})
	if err != nil {
		return nil, err
	}
	text, found, err := variable(keysVariable, p.env)
	if err != nil || !found {
		return []codec.Filter{compressed}, err
	}
	keys, err := encrypt.ParseKeys(text)
	if err != nil {
		return nil, usage(keysVariable+" has no keys: "+err.Error(),
			"write ID:SECRET, separated by commas, the active one first")
	}
	encrypted, err := encrypt.New(encrypt.Options{Keys: keys})
	if err != nil {
		return nil, usage(keysVariable+" has no key ring: "+err.Error(), "give each key an id of its own")
	}
	return []codec.Filter{compressed, encrypted}, nil
}

// plainDriver is the driver of a command, which sees bodies as they were published. What cannot be undone it shows as
// it is stored.
type plainDriver struct {
	driver.Driver
	broker *ferry.Broker
	faults *undoFaults
}

// undoFaults counts bodies that could not be undone.
type undoFaults struct {
	count int
	first error
}

// add takes in the error of one body, which may be nil.
func (f *undoFaults) add(err error) {
	if err == nil {
		return
	}
	if f.count++; f.first == nil {
		f.first = err
	}
}

// note tells of them at the end.
func (f *undoFaults) note(r *remote) {
	if f.count == 0 {
		return
	}
	text := f.first.Error()
	var e *driver.Error
	if errors.As(f.first, &e) {
		text = e.Text
	}
	r.notef("note: %d bodies are shown as they are stored: %s; keys are read from %s or %s_FILE", f.count, text,
		keysVariable, keysVariable)
}

// Get returns a message as each group sees it.
func (d plainDriver) Get(ctx context.Context, t driver.Target) ([]driver.Entry, error) {
	entries, err := d.Driver.Get(ctx, t)
	d.undo(ctx, entries)
	return entries, err
}

// Browse returns a page of messages.
func (d plainDriver) Browse(ctx context.Context, q driver.Query) (driver.Page, error) {
	page, err := d.Driver.Browse(ctx, q)
	d.undo(ctx, page.Entries)
	return page, err
}

func (d plainDriver) undo(ctx context.Context, entries []driver.Entry) {
	for i, e := range entries {
		plain, err := d.broker.UndoEntry(ctx, e)
		d.faults.add(err)
		entries[i] = plain
	}
}

package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/driver"
)

// rawFlag adds --raw.
func rawFlag(f *pflag.FlagSet, raw *bool) {
	f.BoolVar(raw, "raw", false, "write only the bytes, exactly as they are")
	onlyOnCommandLine(f, "raw")
}

// showAll prints a message as each group sees it, or its bytes alone.
func (r *remote) showAll(topic string, views []driver.Entry, raw bool) error {
	if raw {
		return r.writeRaw(bytesOf(views[0]))
	}
	all := make([]entryView, len(views))
	for i, v := range views {
		all[i] = viewEntry(topic, v)
	}
	if r.format != formatTable {
		return list(r, entryColumns, all, "")
	}
	for _, v := range all {
		if err := r.show(v); err != nil {
			return err
		}
	}
	return nil
}

// writeRaw writes bytes as they are, but not to a terminal that would obey them.
func (r *remote) writeRaw(b []byte) error {
	plain := strings.NewReplacer("\n", "", "\t", "").Replace(string(b))
	if isTerminal(r.out) && printable(plain) != plain {
		return usage("these bytes would control your terminal", "redirect them to a file: --raw > FILE")
	}
	_, err := r.out.Write(b)
	return err
}

// bytesOf returns the body of a message, or all there is of one that cannot be decoded.
func bytesOf(e driver.Entry) []byte {
	if e.Message == nil {
		return e.Raw
	}
	return e.Body
}

// showOne prints a message as one group sees it, or its bytes alone.
func (r *remote) showOne(topic string, e driver.Entry, raw bool) error {
	if raw {
		return r.writeRaw(bytesOf(e))
	}
	v := viewEntry(topic, e)
	return r.one(v, func() error { return r.show(v) })
}

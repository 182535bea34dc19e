package main

import (
	"fmt"

	"github.com/ferrymq/ferry/driver"
)

// parsePosition reads a place in the history of a topic.
func parsePosition(flag, s string) (p driver.Position, err error) {
	switch s {
	case "end":
		return p, nil
	case "begin":
		return driver.Position{From: driver.FromBegin}, nil
	}
	if ref, err := driver.ParseRef(s); err == nil {
		return driver.Position{From: driver.FromRef, Ref: ref}, nil
	}
	p.From = driver.FromTime
	if p.Time, err = parseTime(s); err != nil {
		return p, usage(fmt.Sprintf("--%s %q is neither end, begin, a time nor a ref", flag, printable(s)),
			"a time looks like 2026-01-31T15:04:05Z, a ref like 0-42")
	}
	return p, nil
}

// parseRange reads where a range begins, and what it ends before.
func parseRange(from, to string) (begin, end driver.Position, err error) {
	if begin, err = parsePosition("from", from); err != nil {
		return begin, end, err
	}
	if end, err = parsePosition("to", to); err != nil {
		return begin, end, err
	}
	if begin.From == driver.FromEnd || end.From == driver.FromBegin {
		err = usage("nothing is behind the end, or before the begin", "use --from begin --to end for everything")
	}
	return begin, end, err
}

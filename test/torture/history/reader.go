package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const suffix = ".history"

// Read returns the events of all histories in dir, in the order of their stamps. A last line that its writer could
// not finish is left out; any other line that cannot be read is an error.
func Read(dir string) ([]Event, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no *%s files in %s", suffix, dir)
	}
	var all []Event
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		events, err := Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, events...)
	}
	Sort(all)
	return all, nil
}

// Parse reads the lines of one history.
func Parse(text []byte) ([]Event, error) {
	end := bytes.LastIndexByte(text, '\n') + 1 // what follows was cut by kill -9
	var events []Event
	for n := 1; len(text) > 0 && end > 0; n++ {
		line, rest, _ := bytes.Cut(text[:end], []byte("\n"))
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		events = append(events, e)
		text, end = rest, len(rest)
	}
	return events, nil
}

// Sort puts events into the order of their stamps. Equal stamps keep their order.
func Sort(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return strings.Compare(a.Process, b.Process)
	})
}

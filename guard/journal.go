package guard

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard/store"
)

// entry is one line of a journal: the newest of a key or id holds. One line is one change, whole or not at all.
type entry struct {
	Limit  string    `json:"limit,omitempty"`
	Key    string    `json:"key,omitempty"`
	Record *record   `json:"record,omitempty"`
	Mark   string    `json:"mark,omitempty"` // a digest
	Done   time.Time `json:"done,omitzero"`
	Audit  *Change   `json:"audit,omitempty"`
	// Rule is one that operators set, when the change that set it may have left the audit list.
	Rule *SharedRule `json:"rule,omitempty"`
}

// replay puts what a journal says back into the ledger.
func (l *ledger) replay(now time.Time, e entry) {
	if e.Record != nil && !e.Record.idle(now) {
		acc := l.accounts[id{e.Limit, e.Key}]
		if acc == nil {
			acc = new(account)
			l.accounts[id{e.Limit, e.Key}] = acc
		}
		acc.record = e.Record
		l.recorded[id{e.Limit, e.Key}] = acc
	} else if e.Record != nil {
		delete(l.accounts, id{e.Limit, e.Key})
		delete(l.recorded, id{e.Limit, e.Key})
	}
	if k, ok := parseDigest(e.Mark); ok && now.Before(e.Done) {
		l.marks.complete(k, now.Sub(l.epoch), e.Done.Sub(l.epoch))
	}
	if r := e.Rule; r != nil {
		l.rules[store.RuleName(r.Limit, r.Group)] = r
	}
	if e.Audit != nil {
		l.redo(*e.Audit)
		l.note(*e.Audit)
	}
}

// redo applies a change again that concerns no key; those of keys are in their records.
func (l *ledger) redo(c Change) {
	switch c.Action {
	case ActionForceOpen, ActionForceClosed, ActionReleaseForce:
		l.force(c)
	case ActionSetRule, ActionClearRule:
		_ = l.share(c) // there was room when it was made
	}
}

// snapshot returns the entries that say the same as the ledger.
func (l *ledger) snapshot(now time.Time) []entry {
	var all []entry
	for k, acc := range l.recorded {
		if !acc.record.idle(now) {
			r := *acc.record
			all = append(all, entry{Limit: k.limit, Key: k.key, Record: &r})
		}
	}
	for k, m := range l.marks.of {
		if m.token == 0 && !m.over(now.Sub(l.epoch)) {
			all = append(all, entry{Mark: k.String(), Done: l.epoch.Add(m.until)})
		}
	}
	for name, state := range l.forced { // its change may have left the audit list
		action := ActionForceOpen
		if state == StateClosed {
			action = ActionForceClosed
		}
		if !l.audited(name, action) {
			all = append(all, entry{Audit: &Change{At: now, Action: action, Key: name, Actor: "compaction",
				Reason: "forced earlier"}})
		}
	}
	for _, r := range l.rules { // before the changes: those that follow lead to the same rules
		kept := *r
		all = append(all, entry{Rule: &kept})
	}
	for i := range l.audit {
		c := l.audit[i]
		all = append(all, entry{Audit: &c})
	}
	return all
}

func (l *ledger) audited(name string, action Action) bool {
	for i := len(l.audit) - 1; i >= 0; i-- {
		switch c := &l.audit[i]; {
		case c.Key != name || c.Limit != "":
		case c.Action == action:
			return true
		case c.Action == ActionForceOpen, c.Action == ActionForceClosed, c.Action == ActionReleaseForce:
			return false
		}
	}
	return false
}

// appendLine writes an entry as a line: its checksum, a space, and JSON.
func appendLine(b []byte, e entry) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return b, err
	}
	b = fmt.Appendf(b, "%08x ", crc32.ChecksumIEEE(text))
	return append(append(b, text...), '\n'), nil
}

func parseLine(line []byte) (e entry, ok bool) {
	sum, text, found := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if !found || err != nil || len(sum) != 8 || crc32.ChecksumIEEE(text) != uint32(want) {
		return e, false
	}
	return e, json.Unmarshal(text, &e) == nil
}

// readJournal calls each for every entry, and returns how many bytes are whole. What a crash left half-written at the
// end was never acknowledged and is ignored; damage before that is an error.
func readJournal(f *os.File, each func(entry)) (whole int64, err error) {
	const longest = 1 << 20
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		line, err := readLine(r, longest)
		if errors.Is(err, io.EOF) {
			return whole, nil // torn, or nothing
		}
		if err != nil {
			return whole, err
		}
		e, ok := parseLine(line)
		if !ok {
			if _, err := r.Peek(1); errors.Is(err, io.EOF) {
				return whole, nil // the last line: blocks of a file may reach the disk in any order
			}
			return whole, driver.NewError(driver.ErrInvalid, fmt.Sprintf("the guard journal is damaged at byte %d", whole),
				"restore it from a backup, or remove the file to start without blocks, overrides and marks", nil)
		}
		each(e)
		whole += int64(len(line))
	}
}

// readLine returns a line with its end, or io.EOF if there is no whole one.
func readLine(r *bufio.Reader, longest int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull) && len(line) <= longest:
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, driver.NewError(driver.ErrInvalid, "the guard journal has a line without an end",
				"restore it from a backup", nil)
		default:
			return nil, err
		}
	}
}

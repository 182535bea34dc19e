package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/ferrymq/ferry/driver"
)

// hostile is what an attacker may put into a message: a colour, a link, a title, a forged line, a C1 control, a text
// direction mark, bytes that are not UTF-8.
const hostile = "\x1b[31mred \x1b]8;;http://evil\x1b\\link\a \x1b]0;title\a\nhint: rm -rf / \u009b31m \u202egnp.exe " +
	"\x7f \xff"

// hostileText is hostile where text must be UTF-8 without C0 controls: as keys and ids must.
const hostileText = "\u202egnp.exe\u00ad"

// harmless fails if a terminal would obey something in the output.
func (d *desk) harmless(args []string, out string) {
	d.Helper()
	for _, r := range out {
		if r != '\n' && !unicode.IsPrint(r) || r == '\ufffd' {
			d.Errorf("ferry %s prints %q: %q", strings.Join(args, " "), r, out)
			return
		}
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "hint: rm") {
			d.Errorf("ferry %s prints a forged line: %q", strings.Join(args, " "), out)
		}
	}
}

func TestNothingHostileReachesTheTerminal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	evil := driver.Message{ID: "dead" + hostileText, Topic: "orders", Key: hostileText, Body: []byte(hostile),
		Headers: map[string]string{"h" + hostileText: hostile}, ContentType: "x/" + hostileText}
	d.put(evil)
	d.settle("orders", "default", driver.Dead, &driver.Failure{Error: hostile, Stack: hostile + "\n" + hostile,
		Reason: driver.Reason(hostile)})
	evil.ID = "ready" + hostileText
	d.put(evil)
	d.put(driver.Message{ID: "later" + hostileText, Topic: "orders", Delay: 3600e9, Body: []byte(hostile)})
	d.plant("orders", hostile)
	for _, args := range [][]string{
		{"topic", "ls"}, {"topic", "show", "orders"}, {"group", "ls", "orders"}, {"msg", "ls", "orders"},
		{"msg", "ls", "orders", "--state", "dead"},
		{"msg", "ls", "orders", "--state", "delayed"}, {"msg", "show", "orders", "dead" + hostileText},
		{"msg", "show", "orders", "later" + hostileText},
		{"dlq", "ls"}, {"dlq", "ls", "--group-by", "error"}, {"dlq", "show", "orders", "0-1"}, {"parse-errors", "ls"},
		{"parse-errors", "show", "orders", "0-4"},
		{"sub", "orders", "--count", "1"}, {"audit"}, {"doctor"},
		{"msg", "show", "orders", hostile}, {"msg", "show", hostile, "x"}, {"msg", "ls", "orders", "--group", hostile},
		{"msg", "ls", "orders", "--state", hostile},
		{"msg", "ls", "orders", "--cursor", hostile, "--group", "default"}, {"topic", hostile}, {hostile},
		{"pub", "orders", "x", "--header", hostile},
		{"pub", "orders", "x", "--at", hostile}, {"pub", "orders", "x", "--priority", hostile},
		{"group", "create", "orders", "g", "--start", hostile},
		{"msg", "move", "orders", "later" + hostileText, "--file", hostile}, {"dlq", "ls", "--group-by", hostile},
		{"topic", "ls", "--output", hostile},
		{"msg", "rm", "orders", "ready" + hostileText}, {"dlq", "show", "orders", "ready" + hostileText},
		{"sub", "orders", "--group", hostile}, {"topic", "ls", "--" + hostile},
		{"topic", "ls", hostile}, {"dlq", "retry", "orders", "0-1"},
	} {
		for _, format := range []string{formatTable, formatJSON, formatNDJSON} {
			d.env["FERRY_OUTPUT"] = format
			r := d.run(args...)
			d.harmless(args, r.out)
			d.harmless(args, r.err)
			if format == formatNDJSON {
				for line := range strings.Lines(r.out) {
					if !json.Valid([]byte(line)) {
						t.Errorf("ferry %v: not JSON: %s", args, line)
					}
				}
			}
		}
	}
}

// Escaped JSON says the same as before.
func TestEscapedJSONKeepsItsMeaning(t *testing.T) {
	t.Parallel()
	in := map[string]string{"a": "\u009b \u202e \x7f \U000e0001 世界 <&> \n\t\""}
	b, err := encodeJSON(in, "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range strings.TrimSuffix(string(b), "\n") {
		if !unicode.IsPrint(r) {
			t.Errorf("%q is not escaped in %s", r, b)
		}
	}
	var out map[string]string
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(string(b), "世界 <&>") {
		t.Errorf("readable text was escaped: %s", b)
	}
}

// A Chinese character is two columns wide: what stands behind it stays in line.
func TestTablesWithChineseStayInLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(driver.Message{ID: "one", Topic: "orders", Key: "订单队列", Body: []byte("BODY")})
	d.put(driver.Message{ID: "世界", Topic: "orders", Key: "ascii", Body: []byte("BODY")})
	d.put(driver.Message{ID: "two", Topic: "orders", Key: strings.Repeat("长", 40), Body: []byte("BODY")})
	lines := strings.Split(strings.TrimSuffix(d.ok("msg", "ls", "orders"), "\n"), "\n")
	if len(lines) != 4 {
		t.Fatalf("%q", lines)
	}
	title, _, _ := strings.Cut(lines[0], "body")
	at := text.StringWidth(title)
	for _, line := range lines[1:] {
		before, _, ok := strings.Cut(line, "BODY")
		if got := text.StringWidth(before); !ok || got != at {
			t.Errorf("the body is in column %d, its title in %d: %q", got, at, line)
		}
	}
	live := strings.Split(strings.TrimSuffix(d.ok("sub", "orders", "--count", "3"), "\n"), "\n")
	for _, line := range live {
		if before, _, ok := strings.Cut(line, "BODY"); !ok || text.StringWidth(before) != 36+2+12+2 {
			t.Errorf("the body is in column %d: %q", text.StringWidth(before), line)
		}
	}
}

package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWalk(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(filepath.Join(root, WalkFile))
	if err != nil {
		t.Fatal(err)
	}
	sources, err := read()
	if err != nil {
		t.Fatal(err)
	}
	stations := parseWalks(string(document))
	if len(stations) < 30 {
		t.Fatalf("%s has only %d stations: the test cannot read it", WalkFile, len(stations))
	}
	report(t, checkWalks(stations, sources))
}

// TestPublishFilesCanFail: only files before the message is received count, each once.
func TestPublishFilesCanFail(t *testing.T) {
	t.Parallel()
	var stations []station
	for i := range maxPublishFiles {
		file := fmt.Sprint(i, ".go")
		stations = append(stations, station{"Memory", file, "f"}, station{"Memory", file, "g"})
	}
	received := station{"Memory", "receive.go", "subscription.Receive"}
	if broken := checkPublishFiles(append(stations, received, station{"Memory", "later.go", "f"})); len(broken) != 0 {
		t.Errorf("%q", broken)
	}
	more := slices.Concat(stations, []station{{"Memory", "more.go", "f"}})
	if broken := checkPublishFiles(append(more, received)); len(broken) != 1 {
		t.Errorf("%q, want one complaint", broken)
	}
	if broken := checkPublishFiles(more); len(broken) != 0 {
		t.Errorf("%q: a table in which nothing is received is no walk", broken)
	}
}

func TestWalkCanFail(t *testing.T) {
	t.Parallel()
	row := func(file, function string) string { return "| 1 | `" + file + "` | `" + function + "` | x `y` |\n" }
	document := "# A\n| | file | function | what |\n|---|---|---|---|\n## Memory\n" +
		row("a.go", "Publish") + row("a.go", "Broker.Publish") +
		row("a.go", "List.Add") + row("a.go", "gone") + row("b.go", "Publish") + "## Redis\n" +
		strings.Repeat(row("a.go", "List.Receive"), maxStations+1)
	stations := parseWalks(document)
	if len(stations) != 5+maxStations+1 || stations[0].walk != "Memory" || stations[6].walk != "Redis" {
		t.Fatalf("%+v", stations)
	}
	sources := []Source{parse("a.go",
		[]byte("package a\nfunc Publish() {}\nfunc (b *Broker) Publish() {}\nfunc (l *List[T]) Add() {}\n"+
			"func (l *List[T]) Receive() {}\n"))}
	broken := checkWalks(stations, sources)
	want := []string{"a.go has no function gone", "b.go has no function Publish", "Redis has more than"}
	if len(broken) != len(want) {
		t.Fatalf("%q", broken)
	}
	for i, text := range want {
		if !strings.Contains(broken[i], text) {
			t.Errorf("%q, want %q", broken[i], text)
		}
	}
}

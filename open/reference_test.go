package open

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/urls.md from the tables")

// docs/urls.md is made from the tables of options: go test ./open -run TestReference -update
func TestReference(t *testing.T) {
	t.Parallel()
	const page = "../docs/urls.md"
	want := reference()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/urls.md is not what the tables say; run 'make generate' (-tables +file):\n%s", diff)
	}
}

func reference() string {
	var b strings.Builder
	b.WriteString("# Broker URLs\n\nMade from the code by `make generate`. A URL names a broker and sets its options: " +
		"`redis://localhost:6379/0?shards=4`. What stands between `://` and `?`\n" +
		"is percent-encoded where it has special characters, a password for example. An option that a broker does not know " +
		"is an error, and so is a value that it cannot read.\n" +
		"`open.URL`, `--broker` and `FERRY_BROKER` take the same URLs.\n")
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n## %s\n\n```\n%s\n```\n\n| option | value | meaning |\n|---|---|---|\n", k.title,
			strings.Join(k.forms, "\n"))
		for _, o := range slices.Concat(k.options, k.connection, k.spool) {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", o.name, o.value, o.what)
		}
	}
	return b.String()
}

// The tables list what the code takes, no more and no less.
func TestTablesListWhatIsTaken(t *testing.T) {
	t.Parallel()
	taken := regexp.MustCompile(`p\.(?:text|number|duration|flag)\("(\w+)"\)`)
	for _, k := range kinds {
		source, err := os.ReadFile(k.name + ".go")
		if err != nil {
			t.Fatal(err)
		}
		var inCode, inTable []string
		for _, m := range taken.FindAllStringSubmatch(string(source), -1) {
			inCode = append(inCode, m[1])
		}
		for _, o := range k.options {
			inTable = append(inTable, o.name)
		}
		slices.Sort(inCode)
		slices.Sort(inTable)
		if diff := cmp.Diff(slices.Compact(inCode), inTable); diff != "" {
			t.Errorf("%s (-code +table):\n%s", k.name, diff)
		}
	}
}

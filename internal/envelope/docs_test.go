package envelope

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docRows returns the cells of the table that follows a heading of docs/envelope.md, without its head.
func docRows(t *testing.T, heading string) [][]string {
	t.Helper()
	_, text, ok := strings.Cut(string(must[[]byte](t)(os.ReadFile("../../docs/envelope.md"))), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("docs/envelope.md has no heading %q", heading)
	}
	var rows [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("there is no table after %q", heading)
	}
	return rows[2:]
}

func TestDocsHaveTheFieldTable(t *testing.T) {
	t.Parallel()
	dash := func(s string) string {
		if s == "" {
			return "–"
		}
		return s
	}
	rows := docRows(t, "## Fields")
	if len(rows) != len(messageFields) {
		t.Fatalf("docs/envelope.md has %d fields, the code %d", len(rows), len(messageFields))
	}
	for i, f := range messageFields {
		want := []string{fmt.Sprint(i + 1), f.name, kinds[f.kind].proto, dash(f.stream), dash(f.kafka)}
		if got := rows[i]; len(got) != 6 || strings.Join(got[:5], "|") != strings.Join(want, "|") {
			t.Errorf("docs/envelope.md says %q, the code %q", got, want)
		}
	}
}

func TestDocsHaveTheContentTypes(t *testing.T) {
	t.Parallel()
	rows := docRows(t, "### Content types")
	if len(rows) != len(contentTypes)-1 {
		t.Fatalf("docs/envelope.md has %d content types, the code %d", len(rows), len(contentTypes)-1)
	}
	for i, row := range rows {
		if want := []string{fmt.Sprint(i + 1), contentTypes[i+1]}; strings.Join(row, "|") != strings.Join(want, "|") {
			t.Errorf("docs/envelope.md says %q, the code %q", row, want)
		}
	}
}

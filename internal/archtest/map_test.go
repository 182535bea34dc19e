package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFileMaps(t *testing.T) {
	t.Parallel()
	packages, err := list(root, "./...")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range packages {
		if name, ours := short(p.ImportPath); ours {
			names = append(names, name)
		}
	}
	for _, m := range Maps {
		document, err := os.ReadFile(filepath.Join(root, m.File))
		if err != nil {
			t.Fatal(err)
		}
		folders := parseMap(string(document), m.Heading)
		if len(folders) < 20 {
			t.Fatalf("%s has only %d folders: the test looks in the wrong place", m.File, len(folders))
		}
		report(t, checkMap(m.File, folders, names, isFolder))
	}
}

func TestFileMapCanFail(t *testing.T) {
	t.Parallel()
	const document = "\n## File map\n\n| folder | what |\n|---|---|\n| `/` | root |\n| `driver/`, `guard/` | `worker/` " +
		"is no folder here |\n\n## More\n| `cmd/` | x |\n"
	folders := parseMap(document, "File map")
	if got := strings.Join(folders, " "); got != " driver guard" {
		t.Fatalf("folders %q", got)
	}
	exists := func(folder string) bool { return folder != "guard" }
	broken := checkMap("map.md", folders, []string{".", "driver", "driver/kafka", "drivers", "worker"}, exists)
	want := []string{"drivers is not", "worker is not", "names guard/"}
	if len(broken) != len(want) {
		t.Fatalf("%q", broken)
	}
	for i, text := range want {
		if !strings.Contains(broken[i], text) {
			t.Errorf("%q, want %q", broken[i], text)
		}
	}
}

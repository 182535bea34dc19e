package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Maps are the tables of folders: a row for each, whose first cell names it.
var Maps = []struct{ File, Heading string }{
	{"docs/architecture.md", "File map"},
	{"CONTRIBUTING.md", "Where things are"},
}

// parseMap reads the folders out of the table below a heading. "/" is the root.
func parseMap(document, heading string) []string {
	_, section, _ := strings.Cut(document, "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var folders []string
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, name := range quoted.FindAllStringSubmatch(cells[1], -1) {
			folders = append(folders, strings.TrimSuffix(name[1], "/"))
		}
	}
	return folders
}

// checkMap complains about packages that are in no folder of the map, and about folders that do not exist. A package
// below one that the map names is explained there.
func checkMap(file string, folders, packages []string, exists func(folder string) bool) []string {
	var broken []string
	for _, p := range packages {
		if !mapped(folders, p) {
			broken = append(broken, fmt.Sprintf("%s is not in the table of folders in %s: say there what it holds", p, file))
		}
	}
	for _, f := range folders {
		if !exists(f) {
			broken = append(broken, fmt.Sprintf("the table of folders in %s names %s/, which does not exist", file, f))
		}
	}
	return broken
}

// mapped reports whether the map has a package or a folder above it. The root has nothing but itself.
func mapped(folders []string, name string) bool {
	for _, f := range folders {
		if name == f || name == "." && f == "" || f != "" && strings.HasPrefix(name, f+"/") {
			return true
		}
	}
	return false
}

// isFolder reports whether the repository has a folder.
func isFolder(name string) bool {
	info, err := os.Stat(filepath.Join("../..", name))
	return err == nil && info.IsDir()
}

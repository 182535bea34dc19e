// Package overlay changes Go source for one build without touching the repository: with `go build -overlay`. Nothing of
// it can be left over in a release, because nothing of it is in any source file.
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Edit replaces one piece of one source file.
type Edit struct {
	// File is relative to the root of the module.
	File string
	// Search must occur exactly once, so that an edit whose source has moved on fails instead of doing nothing.
	Search  string
	Replace string
}

// Overlay is a set of changed files.
type Overlay struct {
	root  string
	files map[string]string // absolute path: content
}

// New returns an empty overlay on the module in root.
func New(root string) (*Overlay, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(abs, "go.mod")); err != nil {
		return nil, fmt.Errorf("%s is not the root of a module: %w", abs, err)
	}
	return &Overlay{root: abs, files: map[string]string{}}, nil
}

// Apply makes an edit, after those made before in the same file.
func (o *Overlay) Apply(e Edit) error {
	path := filepath.Join(o.root, e.File)
	text, ok := o.files[path]
	if !ok {
		source, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("overlay: %w", err)
		}
		text = string(source)
	}
	if n := strings.Count(text, e.Search); n != 1 || e.Search == "" {
		return fmt.Errorf("overlay: the search text occurs %d times in %s, not once; the source has moved on, mend the "+
			"edit:\n%s", n, e.File, e.Search)
	}
	o.files[path] = strings.Replace(text, e.Search, e.Replace, 1)
	return nil
}

// Write puts the changed files into dir, and returns the name of the file that -overlay wants.
func (o *Overlay) Write(dir string) (string, error) {
	replace := map[string]string{}
	for path, content := range o.files {
		name := filepath.Join(dir, fmt.Sprintf("%d_%s", len(replace), filepath.Base(path)))
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			return "", err
		}
		replace[path] = name
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}

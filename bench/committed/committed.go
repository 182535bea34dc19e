// Package committed reads the results that lie in files beside the bench.
package committed

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Read reads all files of a directory whose names match a pattern, in order of their names. One that is not there has
// none.
func Read[T any](dir, pattern string, parse func(text []byte) (T, error)) ([]T, error) {
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, err
	}
	all := make([]T, len(files))
	for i, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if all[i], err = parse(text); err != nil {
			return nil, fmt.Errorf("%s is no result of this kind: %w", f, err)
		}
	}
	return all, nil
}

// JSON parses a file that has one value.
func JSON[T any](text []byte) (v T, err error) {
	err = json.Unmarshal(text, &v)
	return v, err
}

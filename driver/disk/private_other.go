//go:build !unix

package disk

import (
	"fmt"
	"os"
)

// openPrivate opens a file of the store by its name. A link is refused.
func openPrivate(name string, flag int) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	return os.OpenFile(name, flag, fileMode)
}

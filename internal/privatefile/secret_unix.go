//go:build unix

package privatefile

import (
	"fmt"
	"os"
	"syscall"
)

// private refuses a secret that everybody on the machine can read or change, and one that another user may have put
// there. A group may read it: that is how Kubernetes gives secrets to a process that is not root.
func private(path string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 || mode&0o020 != 0 {
		return &Shared{fmt.Sprintf("its mode %04o lets others read or change it", mode),
			"run chmod 600 on it; for a secret of Kubernetes set defaultMode: 0440"}
	}
	if !trusted(info) {
		return &Shared{"it belongs to another user", "use a file of your own or of root"}
	}
	link, err := os.Lstat(path)
	if err == nil && link.Mode()&os.ModeSymlink != 0 && !trusted(link) {
		return &Shared{"it is a link that belongs to another user, who may let it point anywhere", "name the file itself"}
	}
	return err
}

// trusted reports whether a file belongs to this user or to root.
func trusted(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && (s.Uid == 0 || int(s.Uid) == os.Geteuid())
}

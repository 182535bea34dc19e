package overlay

import (
	"fmt"
	"path/filepath"
)

// The environment of a process that is to die at an exact line.
const (
	// KillAt names the place, as given to Overlay.KillAt.
	KillAt = "FERRY_OVERLAY_KILL_AT"
	// KillHit is how often the line is passed before, and including, the fatal time. Defaults to 1.
	KillHit = "FERRY_OVERLAY_KILL_HIT"
)

// KillAt makes processes whose environment says so (KillAt=place) kill themselves with SIGKILL just before the line
// that begins with search. Several places of one package can be given to one build, and chosen at run time.
func (o *Overlay) KillAt(place, pkg, file, search string) error {
	err := o.Apply(Edit{
		File:    file,
		Search:  search,
		Replace: fmt.Sprintf("overlayKillAt(%q); %s", place, search),
	})
	if err == nil {
		o.Add(filepath.Join(filepath.Dir(file), "overlay_kill.go"), fmt.Sprintf(killSource, pkg, KillAt, KillHit))
	}
	return err
}

const killSource = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

var overlayHits atomic.Int64

func overlayKillAt(place string) {
	if os.Getenv(%q) != place {
		return
	}
	fatal, err := strconv.ParseInt(os.Getenv(%q), 10, 64)
	if err != nil {
		fatal = 1
	}
	if overlayHits.Add(1) == fatal {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {}
	}
}
`

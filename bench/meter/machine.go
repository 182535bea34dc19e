package meter

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of /proc/stat: USER_HZ, which Linux fixes at 100 for user space.
const tick = 10 * time.Millisecond

// machineTimes is the processor time of the whole machine since it started.
type machineTimes struct{ busy, idle, steal time.Duration }

func readMachine() machineTimes {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return machineTimes{} // not Linux: the shares are then 0
	}
	return parseStat(string(text))
}

// parseStat reads the first line: cpu user nice system idle iowait irq softirq steal ...
func parseStat(text string) machineTimes {
	line, _, _ := strings.Cut(text, "\n")
	var m machineTimes
	for i, f := range strings.Fields(line) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			continue // the word "cpu"
		}
		switch d := time.Duration(n) * tick; i {
		case 1, 2, 3, 6, 7:
			m.busy += d
		case 4, 5:
			m.idle += d
		case 8:
			m.steal = d
		}
	}
	return m
}

// shares returns what the host stole and what processes other than ours used since before, of all processor time.
func (m machineTimes) shares(before machineTimes, ours time.Duration) (steal, others float64) {
	busy, stolen := m.busy-before.busy, m.steal-before.steal
	total := busy + stolen + m.idle - before.idle
	if total <= 0 {
		return 0, 0
	}
	steal = float64(stolen) / float64(total)
	others = float64(busy-ours) / float64(total)
	if busy-ours < 2*tick { // within the grain of the clock
		others = 0
	}
	return steal, others
}

// Machine describes where a run took place.
type Machine struct {
	CPU      string  `json:"cpu"`
	Cores    int     `json:"cores"`
	MemoryGB float64 `json:"memory_gb"`
	Kernel   string  `json:"kernel"`
	Go       string  `json:"go"`
}

// ThisMachine describes the machine this runs on.
func ThisMachine() Machine {
	m := Machine{CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(),
		Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH}
	if kb, err := strconv.ParseFloat(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 64); err == nil {
		m.MemoryGB = float64(int(kb/1024/1024*10)) / 10
	}
	var u syscall.Utsname
	if syscall.Uname(&u) == nil {
		for _, c := range u.Release {
			if c == 0 {
				break
			}
			m.Kernel += string(rune(c))
		}
	}
	return m
}

// field returns the value of the first "name : value" line of a file, or "unknown".
func field(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}

// Commit names what was measured, as well as git can tell: with "-dirty" where files differ from it, but for those that
// a run writes itself, so that one run after another is of one commit.
func Commit(ctx context.Context) string { return commitIn(ctx, ".") }

func commitIn(ctx context.Context, dir string) string {
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	commit, err1 := git("describe", "--always")
	changed, err2 := git("status", "--porcelain", "--untracked-files=no", "--", ":(top)", ":(top,exclude)bench/results",
		":(top,exclude)docs/benchmarks.md", ":(top,exclude)docs/performance.md")
	switch {
	case err1 != nil || err2 != nil:
		return "unknown"
	case changed != "":
		return commit + "-dirty"
	}
	return commit
}

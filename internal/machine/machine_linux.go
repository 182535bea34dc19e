package machine

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is what /proc counts processor time in: the kernel's USER_HZ, 100 a second on every architecture that Go runs
// on.
const tick = time.Second / 100

func (s *Sample) read() {
	s.readProcess()
	s.readHost()
	s.readMemory()
}

func (s *Sample) readProcess() {
	text, _ := os.ReadFile("/proc/self/stat")
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name, which may have anything in it
	if f := strings.Fields(rest); len(f) > 21 {
		s.Process = time.Duration(number(f[11])+number(f[12])) * tick
		s.Resident = number(f[21]) * int64(os.Getpagesize())
	}
}

func (s *Sample) readHost() {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	f := strings.Fields(line)
	if len(f) < 8 || f[0] != "cpu" {
		return
	}
	// user, nice, system, idle, iowait, irq, softirq, steal; what guests use is in user
	for i, field := range f[1:min(len(f), 9)] {
		spent := time.Duration(number(field)) * tick
		s.Total += spent
		if i != 3 && i != 4 {
			s.Busy += spent
		}
	}
}

func (s *Sample) readMemory() {
	text, _ := os.ReadFile("/proc/meminfo")
	var total, available int64
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "MemTotal:":
			total = number(f[1]) << 10
		case "MemAvailable:":
			available = number(f[1]) << 10
		}
	}
	if total > 0 && available > 0 {
		s.HostUsed, s.HostMemory = total-available, total
	}
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

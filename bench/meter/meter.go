// Package meter measures what a stretch of work costs the process, and what the machine did meanwhile.
package meter

import (
	"runtime"
	"syscall"
	"time"
)

// Reading is what a stretch of work cost.
type Reading struct {
	Elapsed time.Duration `json:"elapsed"`
	// CPU is the processor time of this process, ServerCPU that of the servers it measures.
	CPU       time.Duration `json:"cpu"`
	ServerCPU time.Duration `json:"server_cpu,omitempty"`
	// Allocs is the number of heap allocations of this process.
	Allocs uint64 `json:"allocs"`
	// Steal is the share of the machine's processor time that its host took away, 0 to 1.
	Steal float64 `json:"steal"`
	// Others is the share of the machine's processor time that other processes used, 0 to 1.
	Others float64 `json:"others"`
}

// A round is noisy above these shares of the machine's processor time.
const (
	noisySteal  = 0.03
	noisyOthers = 0.10
)

// Noisy reports whether somebody else used so much of the machine that the figures suffered.
func (r Reading) Noisy() bool { return r.Steal > noisySteal || r.Others > noisyOthers }

// Span is a measurement under way.
type Span struct {
	servers func() time.Duration
	server  time.Duration
	began   time.Time
	cpu     time.Duration
	allocs  uint64
	machine machineTimes
}

// Start begins a measurement. The function returns the processor time so far of servers outside this process.
func Start(servers func() time.Duration) *Span {
	s := &Span{servers: servers, server: servers(), machine: readMachine(), allocs: allocations(), cpu: processCPU()}
	s.began = time.Now()
	return s
}

// Stop ends it.
func (s *Span) Stop() Reading {
	r := Reading{Elapsed: time.Since(s.began), CPU: processCPU() - s.cpu, Allocs: allocations() - s.allocs}
	r.ServerCPU = s.servers() - s.server
	r.Steal, r.Others = readMachine().shares(s.machine, r.CPU+r.ServerCPU)
	return r
}

func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// LiveHeap collects garbage and returns the bytes that are in use.
func LiveHeap() uint64 {
	runtime.GC()
	runtime.GC() // finalizers and pools need a second round
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

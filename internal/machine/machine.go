// Package machine reads what the process and its host use: processors and memory, as the operating system counts them.
package machine

import (
	"runtime"
	"time"
)

// Sample is what was counted at one moment. What the system does not tell is zero.
type Sample struct {
	At time.Time
	// Process is the processor time that the process has used, of Processors that it may use.
	Process    time.Duration
	Processors int
	// Busy is the processor time that the host was busy, of Total.
	Busy, Total time.Duration
	// Resident is the memory of the process, HostUsed and HostMemory that of the host.
	Resident, HostUsed, HostMemory int64
}

// Read reads a sample.
func Read() Sample {
	s := Sample{At: time.Now(), Processors: runtime.GOMAXPROCS(0)}
	s.read()
	return s
}

// ProcessCPU is which share of its processors the process used since an earlier sample, from 0 to 1.
func (s Sample) ProcessCPU(before Sample) float64 {
	return share(s.Process-before.Process, s.At.Sub(before.At)*time.Duration(s.Processors))
}

// HostCPU is which share of its processors the host used since an earlier sample, from 0 to 1.
func (s Sample) HostCPU(before Sample) float64 {
	return share(s.Busy-before.Busy, s.Total-before.Total)
}

func share(used, of time.Duration) float64 {
	if used <= 0 || of <= 0 {
		return 0
	}
	return min(1, float64(used)/float64(of))
}

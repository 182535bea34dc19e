//go:build !linux

package machine

import "runtime"

// read knows the memory of the process only, as the runtime counts it.
func (s *Sample) read() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.Resident = int64(m.Sys)
}

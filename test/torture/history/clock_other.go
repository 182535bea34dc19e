//go:build !linux

package history

import "time"

// Now reads the wall clock where there is no common monotonic clock. Do not set the clock during a run.
func Now() int64 { return time.Now().UnixNano() }

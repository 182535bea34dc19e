// Package instance names the process that runs, for people who look at histories, locks and members.
package instance

import (
	"crypto/rand"
	"fmt"
	"os"
)

// Host is the name of the machine, or "unknown" where it has none.
func Host() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "unknown"
	}
	return host
}

// Process is host-pid: the same wherever this process is named.
func Process() string { return fmt.Sprintf("%.64s-%d", Host(), os.Getpid()) }

// Unique is host-pid-random: two of one process differ, too.
func Unique() string { return fmt.Sprintf("%s-%.6s", Process(), rand.Text()) }

// Package rig puts a torture run together: processes, load, faults by schedule, drain, audit, verdict.
package rig

import (
	"fmt"
	"strings"
	"time"

	"github.com/ferrymq/ferry/test/torture/schedule"
)

// Fault is a named schedule with what it may cost.
type Fault struct {
	Name string
	Help string
	// Schedule in the language of package schedule; LEASE stands for the lease of the run.
	Schedule string
	// NoDuplicates says that no message may be handled twice, but for retries.
	NoDuplicates bool
}

// Faults returns those that every broker must survive, in order. Each broker may have more of its own.
func Faults() []Fault {
	return []Fault{
		{Name: "none", Help: "load only", NoDuplicates: true},
		{Name: "kill-consumer", Help: "kill -9 of consumers", Schedule: "every 700ms-1300ms kill consumer any"},
		{Name: "kill-producer", Help: "kill -9 of producers", Schedule: "every 300ms-900ms kill producer any", NoDuplicates: true},
		{Name: "stop-consumer", Help: "SIGSTOP of consumers beyond their lease", Schedule: "every 1200ms from 200ms stop consumer any for LEASE*1.2"},
		{Name: "stop-producer", Help: "SIGSTOP of producers", Schedule: "every 500ms-900ms stop producer any for 300ms", NoDuplicates: true},
		{Name: "term-consumer", Help: "SIGTERM of consumers under load", Schedule: "every 200ms-500ms term consumer any", NoDuplicates: true},
		{Name: "term-producer", Help: "SIGTERM of producers under load", Schedule: "every 200ms-500ms term producer any", NoDuplicates: true},
		{Name: "slow-handler", Help: "handlers that need longer than their lease", Schedule: "at 100ms slow consumer all with LEASE*1.5 for 1h", NoDuplicates: true},
		{Name: "fail-handler", Help: "handlers that fail", Schedule: "at 0s fail consumer all with 0.3 for 1h", NoDuplicates: true},
		{Name: "panic-handler", Help: "handlers that panic", Schedule: "at 0s panic consumer all with 0.2 for 1h", NoDuplicates: true},
		{Name: "lose-renewals", Help: "handlers that exceed their lease, unrenewed", Schedule: "at 0s slow consumer all with LEASE*1.5 for 1h; every 1s from 100ms lose-renewals consumer any for LEASE*2"},
		{Name: "cut", Help: "connections cut", Schedule: "every 800ms-1500ms cut consumer any for 300ms; every 500ms-900ms cut producer any for 200ms; at 900ms cut consumer 1 for LEASE*1.5"},
		{Name: "lose-replies", Help: "requests carried out whose reply is lost", Schedule: "every 700ms-1200ms lose-replies consumer any for 200ms; every 400ms-900ms lose-replies producer any for 150ms"},
		{Name: "clock", Help: "client clocks an hour off the broker's", Schedule: "at 0s clock consumer 1 with 1h for 1h; at 0s clock consumer 2 with -1h for 1h; at 0s fail consumer all with 0.2 for 1h", NoDuplicates: true},
		{Name: "mix", Help: "a bit of everything", Schedule: `every 1500ms-2500ms kill consumer any; every 900ms-2s kill producer any; every 2s from 400ms stop consumer any for LEASE*1.2
			every 700ms-1500ms term consumer any; at 0s fail consumer all with 0.1 for 1h; at 0s panic consumer any with 0.1 for 1h; every 1s-2s cut consumer any for 300ms
			every 1s-2s lose-replies consumer any for 100ms; every 1s-2s lose-replies producer any for 100ms; every 3s clock consumer any with 1h for 1s`},
	}
}

// clauses reads the schedule of a fault for a lease.
func (f Fault) clauses(lease time.Duration, actions schedule.Actions) ([]schedule.Clause, error) {
	text := f.Schedule
	for _, factor := range []float64{1.2, 1.5, 2} {
		text = strings.ReplaceAll(text, fmt.Sprintf("LEASE*%v", factor), time.Duration(float64(lease)*factor).String())
	}
	return schedule.Parse(text, actions)
}

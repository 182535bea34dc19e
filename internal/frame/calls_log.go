package frame

import "github.com/ferrymq/ferry/driver"

// Replay is CallReplay.
type Replay struct {
	Topic, Group string
	Options      driver.ReplayOptions
}

// Walk writes or reads it.
func (x *Replay) Walk(w *Walk) {
	text(w, &x.Topic)
	text(w, &x.Group)
	replayOptions(w, &x.Options)
}

// Retain is CallRetain.
type Retain struct {
	Topic     string
	Retention driver.Retention
}

// Walk writes or reads it.
func (x *Retain) Walk(w *Walk) {
	text(w, &x.Topic)
	retention(w, &x.Retention)
}

type (
	// Partitions are the answer to CallPartitions.
	Partitions []driver.Partition
	// PendingQuery is CallPending.
	PendingQuery driver.PendingQuery
	// PendingPage is the answer to CallPending.
	PendingPage driver.PendingPage
	// RangeQuery is CallRange.
	RangeQuery driver.RangeQuery
	// RangePage is the answer to CallRange.
	RangePage driver.RangePage
	// Retention is the answer to CallRetention.
	Retention driver.Retention
	// TrimReport is the answer to CallTrim.
	TrimReport driver.TrimReport
)

// Walk writes or reads them.
func (x *Partitions) Walk(w *Walk) { list(w, (*[]driver.Partition)(x), partition) }

// Walk writes or reads it.
func (x *PendingQuery) Walk(w *Walk) { pendingQuery(w, (*driver.PendingQuery)(x)) }

// Walk writes or reads it.
func (x *PendingPage) Walk(w *Walk) { pendingPage(w, (*driver.PendingPage)(x)) }

// Walk writes or reads it.
func (x *RangeQuery) Walk(w *Walk) { rangeQuery(w, (*driver.RangeQuery)(x)) }

// Walk writes or reads it.
func (x *RangePage) Walk(w *Walk) { rangePage(w, (*driver.RangePage)(x)) }

// Walk writes or reads it.
func (x *Retention) Walk(w *Walk) { retention(w, (*driver.Retention)(x)) }

// Walk writes or reads it.
func (x *TrimReport) Walk(w *Walk) { trimReport(w, (*driver.TrimReport)(x)) }

package frame

import "github.com/ferrymq/ferry/driver"

// Functions for the types of driver.Log.

func partition(w *Walk, p *driver.Partition) {
	number(w, &p.Partition)
	number(w, &p.Entries)
	number(w, &p.Memory)
	ref(w, &p.First)
	ref(w, &p.Last)
	list(w, &p.Groups, partitionGroup)
}

func partitionGroup(w *Walk, g *driver.PartitionGroup) {
	text(w, &g.Group)
	text(w, &g.Owner)
	number(w, &g.Lag)
	number(w, &g.Pending)
	list(w, &g.Consumers, partitionConsumer)
}

func partitionConsumer(w *Walk, c *driver.PartitionConsumer) {
	text(w, &c.Instance)
	number(w, &c.Pending)
	number(w, &c.Idle)
}

func pendingQuery(w *Walk, q *driver.PendingQuery) {
	text(w, &q.Topic)
	text(w, &q.Group)
	text(w, &q.Instance)
	text(w, &q.Cursor)
	number(w, &q.Limit)
}

func pendingPage(w *Walk, p *driver.PendingPage) {
	list(w, &p.Entries, pendingEntry)
	text(w, &p.Next)
}

func pendingEntry(w *Walk, e *driver.PendingEntry) {
	ref(w, &e.Ref)
	text(w, &e.ID)
	text(w, &e.Instance)
	number(w, &e.Idle)
	number(w, &e.Deliveries)
	text(w, &e.State)
}

func replayOptions(w *Walk, o *driver.ReplayOptions) {
	position(w, &o.From)
	position(w, &o.To)
	w.flag(&o.DryRun)
}

func rangeQuery(w *Walk, q *driver.RangeQuery) {
	text(w, &q.Topic)
	number(w, &q.Partition)
	position(w, &q.From)
	position(w, &q.To)
	number(w, &q.Limit)
}

func rangePage(w *Walk, p *driver.RangePage) {
	list(w, &p.Entries, entry)
	ref(w, &p.Next)
}

func retention(w *Walk, r *driver.Retention) {
	number(w, &r.Age)
	number(w, &r.Entries)
	number(w, &r.Bytes)
	w.flag(&r.DropUnsettled)
}

func trimReport(w *Walk, r *driver.TrimReport) {
	number(w, &r.Removed)
	number(w, &r.Dropped)
	w.flag(&r.Waits)
}

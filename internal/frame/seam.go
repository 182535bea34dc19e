package frame

import "github.com/ferrymq/ferry/driver"

// Functions for the types of package driver, in the order of their fields there.

func ref(w *Walk, r *driver.Ref) {
	number(w, &r.Partition)
	count(w, &r.Pos)
	count(w, &r.Sub)
}

func receipt(w *Walk, r *driver.Receipt) {
	text(w, &r.ID)
	ref(w, &r.Ref)
	w.flag(&r.Duplicate)
	w.flag(&r.Spooled)
	failure(w, &r.Err)
}

func subscribeOptions(w *Walk, o *driver.SubscribeOptions) {
	text(w, &o.Topic)
	text(w, &o.Group)
	text(w, &o.Instance)
	number(w, &o.Lease)
	count(w, &o.Order)
	number(w, &o.MaxRun)
	number(w, &o.MaxInflight)
	for i := range o.Weights {
		number(w, &o.Weights[i])
	}
	w.flag(&o.StrictPriority)
	position(w, &o.Start)
}

func position(w *Walk, p *driver.Position) {
	count(w, &p.From)
	w.moment(&p.Time)
	ref(w, &p.Ref)
}

func attempt(w *Walk, f *driver.Failure) {
	w.moment(&f.At)
	text(w, &f.Instance)
	number(w, &f.Attempt)
	number(w, &f.Duration)
	text(w, &f.Reason)
	text(w, &f.Error)
	text(w, &f.Stack)
}

func topicConfig(w *Walk, c *driver.TopicConfig) {
	number(w, &c.MaxMessages)
	number(w, &c.MaxBytes)
	number(w, &c.Keep)
	number(w, &c.KeepMost)
	w.flag(&c.ExpiredDead)
	number(w, &c.Partitions)
}

func topicInfo(w *Walk, t *driver.TopicInfo) {
	text(w, &t.Topic)
	topicConfig(w, &t.Config)
	w.flag(&t.Paused)
	list(w, &t.Groups, text[string])
}

func topicStats(w *Walk, s *driver.TopicStats) {
	text(w, &s.Topic)
	w.flag(&s.Paused)
	for _, n := range []*uint64{&s.Published, &s.Fanned, &s.Expired, &s.Cancelled} {
		w.uint(n)
	}
	for _, n := range []*int64{&s.Delayed, &s.Held, &s.Invalid, &s.Messages, &s.Bytes} {
		number(w, n)
	}
	list(w, &s.Groups, groupStats)
}

func groupStats(w *Walk, g *driver.GroupStats) {
	text(w, &g.Group)
	count(w, &g.Order)
	w.flag(&g.Paused)
	number(w, &g.Consumers)
	for _, n := range []*uint64{&g.Received, &g.Acked, &g.Dropped, &g.Expired, &g.Cancelled, &g.Redelivered, &g.Retried,
		&g.Died} {
		w.uint(n)
	}
	for _, n := range []*int64{&g.Ready, &g.Inflight, &g.Waiting, &g.Dead} {
		number(w, n)
	}
	number(w, &g.Oldest)
}

func target(w *Walk, t *driver.Target) {
	text(w, &t.Topic)
	text(w, &t.Group)
	ref(w, &t.Ref)
	text(w, &t.ID)
	number(w, &t.Death)
}

func move(w *Walk, m *driver.Move) {
	target(w, &m.Target)
	number(w, &m.After)
	message(w, &m.Edit)
	text(w, &m.To)
}

func query(w *Walk, q *driver.Query) {
	text(w, &q.Topic)
	text(w, &q.Group)
	text(w, &q.State)
	text(w, &q.Cursor)
	number(w, &q.Limit)
	number(w, &q.MaxScan)
}

func page(w *Walk, p *driver.Page) {
	list(w, &p.Entries, entry)
	number(w, &p.Scanned)
	text(w, &p.Next)
}

func entry(w *Walk, e *driver.Entry) {
	message(w, &e.Message)
	ref(w, &e.Ref)
	text(w, &e.Group)
	text(w, &e.State)
	number(w, &e.Attempt)
	number(w, &e.Deliveries)
	w.moment(&e.DueAt)
	w.moment(&e.ExpiresAt)
	text(w, &e.Instance)
	w.moment(&e.SettledAt)
	number(w, &e.Took)
	list(w, &e.History, attempt)
	letter(w, &e.Dead)
	w.bytes(&e.Raw)
	text(w, &e.Problem)
	w.moment(&e.FoundAt)
}

func usage(w *Walk, u *driver.Usage) {
	for _, n := range []*int64{&u.Memory, &u.MemoryLimit, &u.Disk, &u.DiskFree} {
		number(w, n)
	}
	number(w, &u.Connections)
}

func finding(w *Walk, f *driver.Finding) {
	text(w, &f.Severity)
	text(w, &f.Subject)
	text(w, &f.Text)
	text(w, &f.Hint)
}

func auditReport(w *Walk, r *driver.AuditReport) {
	text(w, &r.Topic)
	number(w, &r.Checked)
	list(w, &r.Problems, problem)
	topicStats(w, &r.Stats)
}

func problem(w *Walk, p *driver.Problem) {
	text(w, &p.Kind)
	text(w, &p.Group)
	text(w, &p.ID)
	text(w, &p.Text)
	w.flag(&p.Fixed)
}

func capabilities(w *Walk, c *driver.Capabilities) {
	text(w, &c.Driver)
	text(w, &c.LeaseScope)
	number(w, &c.MinLease)
	number(w, &c.DefaultLease)
	text(w, &c.KeyedPriority)
	text(w, &c.Parallel)
	text(w, &c.Dedup)
	number(w, &c.IDWindow)
	text(w, &c.Bound)
	text(w, &c.AtomicPublish)
	text(w, &c.AtomicEmit)
	text(w, &c.Counts)
	text(w, &c.GetByID)
	w.flag(&c.PhysicalDelete)
	text(w, &c.History)
	w.flag(&c.Endings)
	count(w, &c.Durability)
	list(w, &c.Levels, count[driver.Durability])
	number(w, &c.MaxBody)
	number(w, &c.SettleLag)
	w.flag(&c.Local)
}

func value(w *Walk, v *driver.Value) {
	text(w, &v.Name)
	w.bytes(&v.Data)
	w.uint(&v.Revision)
	w.uint(&v.Epoch)
	w.moment(&v.Written)
	number(w, &v.Left)
	w.flag(&v.Deleted)
}

func write(w *Walk, x *driver.Write) {
	text(w, &x.Name)
	w.bytes(&x.Data)
	w.flag(&x.Delete)
	count(w, &x.If)
	number(w, &x.TTL)
	optional(w, &x.Fence, fence)
	text(w, &x.Request)
	w.flag(&x.Quiet)
}

func fence(w *Walk, f *driver.Fence) {
	text(w, &f.Name)
	w.uint(&f.Epoch)
}

func writeResult(w *Walk, r *driver.WriteResult) {
	value(w, &r.Value)
	failure(w, &r.Err)
}

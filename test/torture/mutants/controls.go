package mutants

import "github.com/ferrymq/ferry/test/torture/overlay"

// controlMutants are bugs of locks, of an outbox, of transactions, and of a worker that is told what to do while it
// runs.
func controlMutants() []Mutant {
	edit := func(file, search, replace string) []overlay.Edit {
		return []overlay.Edit{{File: file + ".go", Search: search, Replace: replace}}
	}
	locks := func(test string) Check { return Check{Package: "./cluster", Run: test + "$"} }
	controls := func(test string) Check { return Check{Package: "./worker", Run: test + "$"} }
	rows := func(test string) Check { return Check{Package: "./outbox", Run: test + "$"} }
	halves := func(test string) Check { return Check{Package: "./transaction", Run: test + "$"} }
	return []Mutant{
		{
			Name: "lock-no-fence", Bug: "what is written under a lock is not fenced",
			Edits: edit("cluster/lock", "if l.epoch == 0 {", "if l.epoch != 0 {"),
			Check: locks("TestFenceRefusesALateWrite"),
		},
		{
			Name: "lock-ends-late", Bug: "the context of a lock ends when another may have it already",
			Edits: edit("internal/leasekeeper/run", "return lease - lease/10", "return lease + lease/10"),
			Check: locks("TestLockEndsInTime"),
		},
		{
			Name: "lock-renewed-anyway", Bug: "a lock that is another's, or gone, counts as renewed",
			Edits: edit("cluster/keeper", "ours := conflict && r.Epoch == l.epoch && l.wrote(r.Value)", "ours := conflict"),
			Check: locks("TestLockIsTakenAway"),
		},
		{
			Name: "lock-answer-believed", Bug: "a lock that was taken long ago, by a write whose answer comes only now, " +
				"counts as held",
			Edits: edit("cluster/acquire", "time.Since(before) < leasekeeper.Usable(l.o.TTL):",
				"before.Before(before.Add(leasekeeper.Usable(l.o.TTL))):"),
			Check: locks("TestLockWhoseAnswerComesTooLate"),
		},
		{
			Name: "outbox-range", Bug: "rows are removed as a range, with one that was committed late",
			Edits: edit("outbox/table", `query.WriteString("DELETE FROM " + Table + " WHERE seq IN (")`,
				`fmt.Fprintf(&query, "DELETE FROM %s WHERE seq BETWEEN %d AND %d OR seq IN (", Table, r.acked[0], r.acked[n-1])`),
			Check: rows("TestLateCommit"),
		},
		{
			Name: "outbox-removal-forgotten", Bug: "rows that could not be removed are published again and again",
			Edits: edit("outbox/relay", "if err := r.remove(ctx); err != nil { // before",
				"r.acked = nil\n\tif err := r.remove(ctx); err != nil { // before"),
			Check: rows("TestRemovalFails"),
		},
		{
			Name: "outbox-follower-passes", Bug: "a row passes one of its key for which there is no room",
			Edits: edit("outbox/publish", "if !r.steps {", "if r.steps {"),
			Check: rows("TestFullTopic"),
		},
		{
			Name: "outbox-unknown-removed", Bug: "a row is removed although it is not known whether it was stored",
			Edits: edit("outbox/relay", "case row.err == nil:",
				"case row.err == nil || !isFull(row.err) && !permanent(row.err):"),
			Check: rows("TestBrokerIsAway"),
		},
		{
			Name: "transaction-halves-first", Bug: "a half is stored before anybody can know of it",
			Edits: edit("transaction/tx", "	w := driver.Write{Name: openPrefix + tx.t.ID,",
				"	if _, err := tx.broker.PublishBatch(ctx, halves); err != nil {\n\t\treturn nil, err\n\t}\n\tw := "+
					"driver.Write{Name: openPrefix + tx.t.ID,"),
			Check: halves("TestProducerIsKilled"),
		},
		{
			Name: "transaction-moved-first", Bug: "halves are moved before the decision is written",
			Edits: edit("transaction/tx", "	decided, err := tx.decide(ctx, tx.t, to, ByProducer)",
				"	early := tx.t\n\tearly.State = to\n\t_ = tx.settle(ctx, &early, tx.refs)\n\tdecided, err := tx.decide(ctx, "+
					"tx.t, to, ByProducer)"),
			Check: halves("TestMovedHalfIsLeftAlone"),
		},
		{
			Name:  "transaction-part-committed",
			Bug:   "who is not the producer commits without a look whether all halves are there",
			Edits: edit("transaction/decide", "		if e == nil {", "		if e == nil && h.Topic == \"\" {"),
			Check: halves("TestPartIsNeverCommitted"),
		},
		{
			Name: "transaction-decided-twice", Bug: "a decision is written over another",
			Edits: edit("transaction/decide", "Data: t.encode(),\n\t\t\tIf: driver.Condition(t.revision)}", "Data: t.encode()}"),
			Check: halves("TestDecidedTwice"),
		},
		{
			Name: "transaction-late-half", Bug: "a half that arrives after a rollback stays",
			Edits: edit("transaction/finish", "return t.State == RolledBack && t.By != ByProducer", "return false"),
			Check: halves("TestLateHalf"),
		},
		{
			Name: "quiet-keeps", Bug: "a quiet worker keeps what it has not started",
			Edits: edit("worker/quiet", "\tc.giveBackAll()\n", ""),
			Check: controls("TestQuietKeepsOrder"),
		},
		{
			Name: "cancelled-retried", Bug: "a message that was cancelled is tried again when its handler fails",
			Edits: edit("worker/run", "case r.cancelled.Load():", "case r.cancelled.Load() && r.d == nil:"),
			Check: controls("TestCancelRunning"),
		},
	}
}

package mutants

import "github.com/ferrymq/ferry/test/torture/overlay"

// tortureKafka runs one of the torture runs on a real broker that are only for this.
func tortureKafka(run string) Check {
	return Check{Package: "./test/torture/rig", Run: "TestKafkaTorture/" + run + "$", Tags: "torture"}
}

// testKafka runs a test of the driver.
func testKafka(test string) Check { return Check{Package: "./driver/kafka", Run: test + "$"} }

// testKafkaPart runs a test of one of the packages that the driver consists of.
func testKafkaPart(part, test string) Check {
	return Check{Package: "./driver/kafka/internal/" + part, Run: test + "$"}
}

// kafkaMutants are bugs of the Kafka driver: what a group on a log gets wrong most often.
func kafkaMutants() []Mutant {
	edit := func(file, search, replace string) []overlay.Edit {
		return []overlay.Edit{{File: "driver/kafka/" + file + ".go", Search: search, Replace: replace}}
	}
	return []Mutant{
		{
			Name: "commit-past-undone", Bug: "the commit goes beyond what is unfinished",
			Edits: edit("internal/cluster/membership", "= partition, done.Base, done.Seen, &metadata",
				"= partition, done.Next, done.Seen, new(string)"),
			Check: tortureKafka("kill"),
		},
		{
			Name: "done-set-ignored", Bug: "what is settled beyond the committed offset is not honoured by the next owner",
			Edits: edit("internal/offsets/metadata", "\ts.Decode(text)\n", ""),
			Check: tortureKafka("kill"),
		},
		{
			Name: "revoke-without-commit", Bug: "a partition that goes to another member is not committed before",
			Edits: edit("internal/consumer/assign", "\tm.commitLast(context.WithoutCancel(ctx), cl, going)\n", ""),
			Check: testKafka("TestHandover"),
		},
		{
			Name: "zombie-not-fenced", Bug: "a process that was stopped beyond its session goes on as if it were a member",
			Edits: edit("internal/consumer/vouch", "return now.Before(m.sure)", "return !now.IsZero()"),
			Check: tortureKafka("zombie"),
		},
		{
			Name: "retry-not-stored", Bug: "a retry is only in memory, and its offset is done",
			Edits: edit("internal/consumer/settle", "\ts.store(ctx, work, errs, func(w *settling) *kgo.Record { return "+
				"w.first })\n", ""),
			Check: tortureKafka("kill"),
		},
		{
			Name: "side-log-not-read", Bug: "a new owner does not restore what the retry log holds",
			Edits: edit("internal/consumer/partition", "if it := p.restore(key, r); it != nil {\n\t\t\tp.pending",
				"if it := p.restore(key, r); it != nil && it.offset < 0 {\n\t\t\tp.pending"),
			Check: tortureKafka("kill"),
		},
		{
			Name: "follower-released-early", Bug: "the next of a key starts while its head waits for a retry",
			Edits: releasedEarly(),
			Check: tortureKafka("fail"),
		},
		{
			Name: "retry-loses-its-place", Bug: "a head that was retried is stored behind its followers when its lease is lost",
			Edits: edit("internal/consumer/settle", "driver.CauseRetry, !m.blocks(it)", "driver.CauseRetry, true"),
			Check: testKafka("TestDriver/order/head_keeps_its_place"),
		},
		{
			Name: "place-not-stored", Bug: "the next owner does not know where a replayed message joined its key",
			Edits: edit("internal/consumer/subscription", "c.it.spilled || c.it.tailUnsaved ||", "c.it.spilled ||"),
			Check: testKafka("TestReplayedKeepsItsPlace"),
		},
		{
			Name: "follower-settled-first", Bug: "what is behind a message of its key is settled although that one could not be",
			Edits: edit("internal/consumer/turn", "case o.Outcome == driver.Release:", "case o.Outcome <= driver.Drop:"),
			Check: testKafka("TestOutcomesStandInOrder"),
		},
		{
			Name: "refused-head-kept", Bug: "a holder that heard it lost the head of a key settles what is behind it",
			Edits: edit("internal/consumer/lease", "!c.p.succeeded && !s.m.vouched(now) {", "!c.p.succeeded && now.IsZero() {"),
			Check: testKafka("TestRefusedHeadIsLost"),
		},
		{
			Name: "due-truncated", Bug: "a delay is cut to whole seconds",
			Edits: edit("internal/delay/delay", "x.due = r.Timestamp.Add(s.After).Add(time.Millisecond)",
				"x.due = r.Timestamp.Add(s.After.Truncate(time.Second)).Add(time.Millisecond)"),
			Check: tortureKafka("none"),
		},
		{
			Name: "expired-delivered", Bug: "messages live an hour longer than they should",
			Edits: edit("internal/consumer/item", "it.Msg.PublishedAt.Add(it.Msg.TTL)",
				"it.Msg.PublishedAt.Add(it.Msg.TTL + time.Hour)"),
			Check: tortureKafka("kill"),
		},
		{
			Name: "ack-before-store", Bug: "a publish is acknowledged, and some messages are then not stored",
			Edits: edit("internal/publisher/publish", "\t\tif p.Record != nil {\n",
				"\t\tif p.Record != nil && len(msgs[i].Body)%31 != 7 {\n"),
			Check: tortureKafka("none"),
		},
		{
			Name: "dead-letter-dropped", Bug: "a message that dies is not kept",
			Edits: edit("internal/consumer/settle", "w.first = m.deadRecord(it", "_ = m.deadRecord(it"),
			Check: tortureKafka("fail"),
		},
		{
			Name: "ack-of-one", Bug: "a publish is acknowledged when one broker has it",
			Edits: edit("internal/cluster/cluster", "kgo.ProducerLinger(0),\n", "kgo.ProducerLinger(0), "+
				"kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(),\n"),
			Check: tortureKafka("kill-brokers"),
		},
		{
			Name: "retry-burns-nothing", Bug: "a failure is not counted by its owner",
			Edits: edit("internal/consumer/settle", "\t\tw.attempts++\n", ""),
			Check: tortureKafka("fail"),
		},
		{
			Name: "loss-not-counted", Bug: "what its holder's crash cost is not counted",
			Edits: edit("internal/consumer/losses", "\t\tit.lost++\n", ""),
			Check: tortureKafka("kill"),
		},
		{
			Name: "handover-counted", Bug: "what goes to another member in order counts as a lost lease",
			Edits: edit("internal/consumer/partition",
				"kind == offsets.MovedPart || kind == offsets.LeasedPart && p.done.Clean:",
				"kind == offsets.MovedPart:\n\tcase kind == offsets.LeasedPart && p.done.Clean:\n\t\tit.lose(begun)"),
			Check: testKafka("TestHandover"),
		},
		{
			Name: "begin-not-stored", Bug: "that a handler was about to start is only in memory",
			Edits: edit("internal/consumer/begin", "\t\t\tnext.Begun = c.String()\n", ""),
			Check: testKafka("TestKillerIsCounted"),
		},
		{
			Name: "begun-for-ever", Bug: "a delivery counts as begun because an earlier one had",
			Edits: edit("internal/consumer/settle",
				"next.After, next.Begun, next.Attempts, next.Cause, next.Tail = max(0, o.After), \"\", w",
				"next.After, next.Attempts, next.Cause, next.Tail = max(0, o.After), w"),
			Check: testKafka("TestUnseenLossesDoNotCount"),
		},
		{
			Name: "late-word-unheard", Bug: "a holder that lost its partition and lives is counted for dead",
			Edits: edit("internal/consumer/losses", "\tif len(notices) == 0 {\n", "\tif len(notices) >= 0 {\n"),
			Check: testKafka("TestLateWordReachesTheNextOwner"),
		},
		{
			Name: "lost-partition-kept", Bug: "a member goes on committing partitions that went to others: a stale commit",
			Edits: append(edit("internal/consumer/assign", "\t\tp.lost = true\n", ""),
				edit("internal/consumer/assign", "\t\tdelete(m.parts, p.id)\n", "")...),
			Check: testKafka("TestStaleCommits"),
		},
		{
			Name: "gap-stall", Bug: "offsets without a message hold up the commit",
			Edits: edit("internal/consumer/partition", "\tp.done.SkipTo(r.Offset)\n", ""),
			Check: testKafka("TestGaps"),
		},
		{
			Name: "end-without-mark", Bug: "what ended in the retry log comes back from the main topic, if that was not " +
				"committed",
			Edits: edit("internal/consumer/ends", "if it.offset >= it.p.passed {", "if it.offset >= 1<<62 {"),
			Check: testKafka("TestAckAfterRetryIsStored"),
		},
		{
			Name: "handed-out-while-it-goes", Bug: "what is given back because its partition goes is handed out once more",
			Edits: edit("internal/consumer/queue", "func (q *queue) offer(it *Item) {\n\tif it.p.going {",
				"func (q *queue) offer(it *Item) {\n\tif it.p.lost {"),
			Check: testKafka("TestHandover"),
		},
		{
			Name: "given-up-at-once", Bug: "an error of the client costs a member what it holds, although it still is one",
			Edits: edit("internal/consumer/assign", "\tif ours {\n", "\tif ours && ctx == nil {\n"),
			Check: testKafka("TestGivenUpByMistake"),
		},
		{
			Name: "delays-not-fenced", Bug: "a process that was stopped fires delayed messages that others have fired",
			Edits: edit("internal/delay/fire", "if w.ownsSome() && !w.vouched(ctx) {", "if w.ownsSome() && ctx == nil {"),
			Check: testKafkaPart("delay", "TestDelaysOfALapsedOwner"),
		},
		{
			Name: "fired-outside-its-transaction", Bug: "a delayed message is fired before it is stored that it has left, " +
				"also with transactions: a kill between the two repeats it",
			Edits: edit("internal/delay/fire", "\tif w.d.cluster.Settings.Transactions {\n\t\tw.storeTogether",
				"\tif w.d.cluster.Settings.Transactions && ctx == nil {\n\t\tw.storeTogether"),
			Check: testKafka("TestFiredIsNotFiredAgain"),
		},
		{
			Name: "first-claim-untold", Bug: "an owner that dies before its first commit has never been there",
			Edits: edit("internal/consumer/subscription", "return it.careful && !it.once || !it.p.begun",
				"return it.careful && !it.once"),
			Check: testKafka("TestKillerIsCounted"),
		},
		{
			Name: "any-commit-counts", Bug: "a commit that names nobody lets the first delivery of an owner through unnamed",
			Edits: edit("internal/consumer/commit", "p.begun = p.begun || named[i]", "p.begun = p.begun || named[i] || true"),
			Check: testKafka("TestKillerIsCounted"),
		},
		{
			Name: "drain-unsaid", Bug: "a member that drains keeps its partitions until it leaves",
			Edits: edit("internal/consumer/balance", "if !draining || meta.ReadFrom(data) != nil {",
				"if !draining || meta.ReadFrom(data) != nil || true {"),
			Check: testKafka("TestDrainPassesPartitionsOn"),
		},
		{
			Name: "given-back-untold", Bug: "what was given back and has no room in the last commit comes as if nobody had " +
				"had it",
			Edits: edit("internal/consumer/commit", "\tm.storeUnnamed(ctx, ps)\n", ""),
			Check: testKafka("TestGivenBackIsTold"),
		},
		{
			Name: "unseen-claim-told", Bug: "a claim that ended before it was delivered changes the cause of the next delivery",
			Edits: edit("internal/consumer/queue", "\tif c.delivered {\n", "\tif c != nil {\n"),
			Check: testKafkaPart("consumer", "TestClaimNobodySaw"),
		},
		{
			Name: "lapsed-claim-delivered", Bug: "a claim that waited for a commit is delivered although nobody vouches for " +
				"the owner any more",
			Edits: edit("internal/consumer/subscription", "return c.p.going || !s.m.vouched(now) ||", "return c.p.going ||"),
			Check: testKafka("TestClaimOfALapsedOwner"),
		},
		{
			Name: "vouched-by-rebalance", Bug: "answers in a rebalance are good for a session, however long it lasts",
			Edits: edit("internal/consumer/vouch", "end.Before(until)", "end.IsZero()"),
			Check: testKafkaPart("consumer", "TestVouchedInARebalance"),
		},
		{
			Name: "old-member-heard", Bug: "a member is heard of although its client joins as another, and the group waits " +
				"for it",
			Edits: edit("internal/consumer/vouch", "\tcase now != old:\n", "\tcase now != old && ctx == nil:\n"),
			Check: testKafka("TestJoinsAnew"),
		},
	}
}

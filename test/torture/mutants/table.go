package mutants

import (
	"slices"

	"github.com/ferrymq/ferry/test/torture/overlay"
)

// conformance runs cases of the conformance suite, torture one fault of the torture smoke.
func conformance(cases string) Check {
	return Check{Package: "./driver/memory", Run: "TestDriver/" + cases}
}
func torture(fault string) Check {
	return Check{Package: "./test/torture/rig", Run: "TestMemorySmoke/" + fault + "$"}
}

// Brokers are those that bugs are planted for.
func Brokers() []string { return []string{"memory", "redis", "redisstream", "kafka"} }

// For returns every mutant of a broker, nil if there is no such broker. Keep the searches short: they follow the
// sources.
func For(broker string) []Mutant {
	switch broker {
	case "memory":
		return slices.Concat(memoryMutants(), controlMutants(), uniqueMutants(), spoolMutants(), stateMutants())
	case "redis":
		return slices.Concat(redisMutants(), redisStateMutants())
	case "redisstream":
		return redisStreamMutants()
	case "kafka":
		return slices.Concat(kafkaMutants(), kafkaKVMutants())
	}
	return nil
}

// quick are mutants that are found within seconds, for each broker: they are part of `make test`.
var quick = map[string][]string{
	"memory": {"lease-not-checked", "release-to-tail", "retry-burns-nothing", "unseen-loss-counted",
		"count-not-taken-back", "unique-freed-by-one-group", "spool-overtaken"},
	"redis":       {"lease-not-checked", "release-to-tail", "dead-letter-dropped"},
	"redisstream": {"release-to-tail", "dead-letter-dropped"},
	"kafka":       {"gap-stall", "vouched-by-rebalance", "kv-clocks-of-leaders", "kv-snapshot-off-by-one"},
}

// Quick returns a few mutants of each broker that are found within seconds.
func Quick() []Mutant {
	var chosen []Mutant
	for _, broker := range Brokers() {
		for _, m := range For(broker) {
			if slices.Contains(quick[broker], m.Name) {
				m.Name = broker + "/" + m.Name
				chosen = append(chosen, m)
			}
		}
	}
	return chosen
}

// releasedEarly is a bug of the scheduler, which memory, disk and Kafka share.
func releasedEarly() []overlay.Edit {
	return []overlay.Edit{{File: "internal/scheduler/chain.go", Search: "\tif c.held > 0 || c.head == nil ||",
		Replace: `	for n := c.head; n != nil && c.held == 0; n = n.links[inChain].next {
		if n.ready() {
			return n
		}
	}
	if c.held > 0 || c.head == nil ||`}}
}

// memoryMutants are bugs of the engine that the memory and the disk driver share, and of the worker.
func memoryMutants() []Mutant {
	edit := func(file, search, replace string) []overlay.Edit {
		return []overlay.Edit{{File: file, Search: search, Replace: replace}}
	}
	const engine = "internal/engine/"
	return []Mutant{
		{
			Name: "ack-before-store", Bug: "a publish is acknowledged, and some messages are then not stored",
			Edits: edit(engine+"publish.go", "\tt.store(e, now)\n\treturn driver.Receipt",
				"\tif len(e.body)%31 != 7 {\n\t\tt.store(e, now)\n\t}\n\treturn driver.Receipt"),
			Check: torture("none"),
		},
		{
			Name: "lease-not-checked", Bug: "a settlement needs only the id of the message, not its token",
			Edits: edit(engine+"lease.go", "\tc, ok := d.Token.(*claim)\n", `	if e, found := s.t.ids.Get(d.ID); found {
		if it := e.item(s.g); it != nil && it.claim != nil {
			return it.claim, nil
		}
	}
	c, ok := d.Token.(*claim)
`),
			Check: conformance("lease/stale_settle_refused"),
		},
		{
			Name: "follower-released-early", Bug: "the next of a key starts while its head waits for a retry",
			Edits: releasedEarly(),
			Check: torture("fail-handler"),
		},
		{
			Name: "retry-to-every-group", Bug: "a retry is stored again in the topic, so that every group gets it",
			Edits: edit(engine+"settle.go", "\t\tg.dueAfter(it, o.After, !g.strict(it), now)",
				"\t\tg.stats.Dropped++\n\t\tg.finish(it, gone, now)\n"+
					"\t\ts.t.store(s.e.newEntry(it.e.message(s.t.name, it.e), now), now)"),
			Check: conformance("groups/retry_belongs_to_one"),
		},
		{
			Name: "dedup-before-success", Bug: "a dedup id is remembered before the message is accepted",
			Edits: edit(engine+"publish.go", "\tif err := t.room(e, 1, e.size()); err != nil {",
				"\tt.noteDedupID(e, now)\n\tif err := t.room(e, 1, e.size()); err != nil {"),
			Check: conformance("dedup/not_of_a_refused"),
		},
		{
			Name: "due-truncated", Bug: "a due time is cut to whole seconds",
			Edits: edit(engine+"entry.go", "\treturn now.after(m.Delay)", "\treturn now.after(m.Delay.Truncate(time.Second))"),
			Check: torture("none"),
		},
		{
			Name: "parse-error-dropped", Bug: "what cannot be decoded is thrown away",
			Edits: edit(engine+"raw.go", "\tt.invalid.put(e.seq, e)\n\tt.stats.Invalid++\n", ""),
			Check: conformance("invalid"),
		},
		{
			Name: "release-to-tail", Bug: "a released message goes behind all others",
			Edits: edit(engine+"settle.go", "\t\tit.cause = driver.CauseReleased\n",
				"\t\tit.cause = driver.CauseReleased\n\t\tit.Place = g.t.nextPlace()\n"),
			Check: conformance("release/to_the_head"),
		},
		{
			Name: "renewer-stopped", Bug: "the worker does not renew its leases",
			Edits: edit("worker/renewer.go", "\terrs := c.conn.Extend(ctx, ds)\n", "\terrs := make([]error, len(ds))\n"),
			Check: torture("slow-handler"),
		},
		{
			Name: "drain-forgets-buffer", Bug: "a worker that stops keeps what it has fetched and not started",
			Edits: edit("worker/drainer.go", "\t\tc.giveBackAll()\n", ""),
			Check: Check{Package: "./test/torture/rig", Run: "TestHandOver"},
		},
		{
			Name: "close-keeps-leases", Bug: "a subscription that closes does not return what it holds",
			Edits: edit(engine+"subscription.go", "\t\ts.g.comeBack(it, now)\n", ""),
			Check: conformance("stop/close_returns"),
		},
		{
			Name: "counter-not-decremented", Bug: "a message that waits for a retry still counts as in flight",
			Edits: edit(engine+"transitions.go", "\tg.count[from]--\n",
				"\tif from != inflight || to != waiting {\n\t\tg.count[from]--\n\t}\n"),
			Check: torture("fail-handler"),
		},
		{
			Name: "bytes-not-decremented", Bug: "the bytes of settled messages still count",
			Edits: edit(engine+"transitions.go", "\tt.stats.Bytes -= e.size()\n", ""),
			Check: torture("none"),
		},
		{
			Name: "redelivery-burns-attempt", Bug: "a lost lease counts as a failed attempt",
			Edits: edit(engine+"losses.go", "\tit.cause = driver.CauseLeaseExpired\n",
				"\tit.cause = driver.CauseLeaseExpired\n\tit.failures++\n"),
			Check: torture("kill-consumer"),
		},
		{
			Name: "loss-not-counted", Bug: "a lost lease counts nothing, so that a killer message lives for ever",
			Edits: edit(engine+"losses.go", "\t\tit.lost = min(it.lost, math.MaxUint16-1) + 1\n",
				"\t\tit.lost = min(it.lost, math.MaxUint16-1)\n"),
			Check: torture("kill-consumer"),
		},
		{
			Name: "unseen-loss-counted", Bug: "every lost lease counts, so that what no handler saw dies of it",
			Edits: edit(engine+"losses.go", "\tif !it.is(leaseLost) || begun {\n",
				"\tif !it.is(leaseLost) || begun || it.is(leaseLost) {\n"),
			Check: conformance("begin/unseen_losses_do_not_count"),
		},
		{
			Name: "first-loss-not-counted", Bug: "the first lost lease counts only if its handler had begun",
			Edits: edit(engine+"losses.go", "\tif !it.is(leaseLost) || begun {\n", "\tif begun {\n"),
			Check: conformance("begin/unseen_losses_do_not_count"),
		},
		{
			Name: "count-not-taken-back", Bug: "a holder that is heard of again stays counted as dead",
			Edits: edit(engine+"losses.go", "\tit.lost--\n", ""),
			Check: conformance("begin/late_settle"),
		},
		{
			Name: "begin-after-the-start", Bug: "a handler starts before its begin is recorded, or without",
			Edits: edit("worker/begin.go", "\t\treturn r.d.Deliveries >= begunDeliveries\n", "\t\treturn false\n"),
			Check: Check{Package: "./worker", Run: "TestNeighboursOfAKillerSurvive|TestBeginThatFails"},
		},
		{
			Name: "lease-too-short", Bug: "a lease ends at half its time",
			Edits: edit(engine+"claim.go", "\texpires := now.after(s.o.Lease)\n", "\texpires := now.after(s.o.Lease / 2)\n"),
			Check: torture("kill-consumer"),
		},
		{
			Name: "dead-letter-dropped", Bug: "a message that dies is not kept",
			Edits: edit(engine+"settle.go", "\t\tg.bury(it, o.Failure, s.o.Instance, now)", "\t\tg.finish(it, gone, now)"),
			Check: torture("fail-handler"),
		},
		{
			Name: "expired-delivered", Bug: "messages live a second longer than they should",
			Edits: edit(engine+"entry.go", "at: now.after(m.TTL)", "at: now.after(m.TTL + time.Second)"),
			Check: conformance("expiry"),
		},
		{
			Name: "worker-ignores-keys", Bug: "the worker runs messages of one key at the same time",
			Edits: edit("worker/lanes.go", "\tkey := r.d.Key\n", "\tkey := \"\"\n"),
			Check: torture("none"),
		},
		{
			Name: "client-clock", Bug: "the worker reckons the age of a message with its own clock",
			Edits: edit("worker/retrier.go", "d.ClaimedAt.Sub(d.PublishedAt)", "time.Since(d.PublishedAt)"),
			Check: torture("clock"),
		},
		{
			Name: "retry-burns-nothing", Bug: "a failure is not counted, so that a message is retried for ever",
			Edits: edit(engine+"settle.go", "\tit.failures++\n", ""),
			Check: conformance("retry"),
		},
	}
}

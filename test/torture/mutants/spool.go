package mutants

import "github.com/ferrymq/ferry/test/torture/overlay"

// spoolMutants are bugs of the spool.
func spoolMutants() []Mutant {
	edit := func(file, search, replace string) []overlay.Edit {
		return []overlay.Edit{{File: "spool/" + file + ".go", Search: search, Replace: replace}}
	}
	check := func(test string) Check { return Check{Package: "./spool", Run: test + "$"} }
	return []Mutant{
		{
			Name: "spool-overtaken", Bug: "a message goes straight to the broker although earlier ones of its key are spooled",
			Edits: edit("backlog", `m == nil || m.Key == "" || b.keys[b.hash(m)] == 0`, "m == nil || b.keys != nil"),
			Check: check("TestAKeyStaysBehindWhatIsSpooledOfIt"),
		},
		{
			Name: "spool-forgets-keys", Bug: "a spool does not know which keys its last life left",
			Edits: edit("spool", "\t\t\td.backlog.add(e.Message)\n", "\t\t\t_ = e\n"),
			Check: check("TestAnotherLife"),
		},
		{
			Name: "spool-ack-unasked", Bug: "what the broker has not taken is acknowledged to the store",
			Edits: edit("drain", "case err == nil:\n\t\t\tdone = append(done, driver.Settlement{Delivery: b.Delivery})",
				"case err == nil || away(err):\n\t\t\tdone = append(done, driver.Settlement{Delivery: b.Delivery})"),
			Check: check("TestManyOutages"),
		},
		{
			Name: "spool-delay-from-drain", Bug: "delays and times to live count from when the broker gets a message",
			Edits: edit("record", "age := max(r.Age+passed, 0)", "age := max(r.Age+0*passed, 0)"),
			Check: check("TestTimesCountFromAcceptance"),
		},
		{
			Name: "spool-age-not-adopted", Bug: "the time that a message spent in the spool of a process that died is forgotten",
			Edits: edit("adopt", "r.Age += max(passed, 0)", "r.Age += 0 * passed"),
			Check: check("TestAdoption"),
		},
		{
			Name: "spool-level-lowered", Bug: "a level that the spool does not give is lowered",
			Edits: edit("store", "return best, found\n", "return best, true\n"),
			Check: check("TestALevelIsNeverLowered"),
		},
		{
			Name: "spool-tries-always", Bug: "a broker that is away is tried with every publish",
			Edits: edit("publish", "if !d.breaker.closed() && (!d.backlog.empty() || !d.breaker.turn()) {", "if false {"),
			Check: check("TestABrokerThatIsAwayIsTriedOnceASecond"),
		},
		{
			Name: "spool-bounded-batch", Bug: "several messages of a key go to a bounded topic in one call, and a later one " +
				"finds room",
			Edits: edit("drain", "careful := r.bounded || r.full > 0", "careful := r.full > time.Hour"),
			Check: check("TestABoundedTopic"),
		},
		{
			Name: "spool-id-not-kept", Bug: "what is drained has no id that the broker remembers",
			Edits: edit("record", "m.OwnID, m.PublishedAt = true, time.Time{}", "m.OwnID, m.PublishedAt = false, time.Time{}"),
			Check: check("TestALostAnswer"),
		},
		{
			Name: "spool-behind-a-later-one", Bug: "a message is spooled although the broker took a later one of its key",
			Edits: edit("publish", "passed[m.Topic+\"/\"+m.Key] = true", "passed[m.Topic+\"/\"+m.Key] = false"),
			Check: check("TestAMessageIsNotSpooledBehindALaterOne"),
		},
	}
}

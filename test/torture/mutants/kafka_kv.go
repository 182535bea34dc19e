package mutants

import "github.com/ferrymq/ferry/test/torture/overlay"

// kafkaKVMutants are bugs of named values on Kafka: readers that do not agree, and leases that end early or come back.
func kafkaKVMutants() []Mutant {
	edit := func(file, search, replace string) []overlay.Edit {
		return []overlay.Edit{{File: "internal/" + file + ".go", Search: search, Replace: replace}}
	}
	check := func(test string) Check { return Check{Package: "./internal/kafkakv", Run: test + "$"} }
	return []Mutant{
		{
			Name: "kv-clocks-of-leaders", Bug: "a TTL goes on by the clock of another leader",
			Edits: edit("kafkakv/replica", "b.Renew(p.now, r.Timestamp)", "b.Sweep(p.now, 0)"),
			Check: check("TestLeaderChangeEndsNothingEarly"),
		},
		{
			Name: "kv-lost-lease-lives", Bug: "a change of leader brings back a lease that somebody was told is lost",
			Edits: edit("kv/bucket", "b.Sweep(last, len(b.values))", "b.Sweep(last, 0)"),
			Check: check("TestLeaderChangeEndsNothingEarly"),
		},
		{
			Name: "kv-revision-again", Bug: "a log that was cut gives revisions a second time",
			Edits: edit("kafkakv/replica", "uint64(max(epoch, 0))<<epochBits", "uint64(max(epoch, 0))<<0"),
			Check: check("TestLeaderChangeEndsNothingEarly"),
		},
		{
			Name: "kv-snapshot-off-by-one", Bug: "who begins with a snapshot passes over the first record behind it",
			Edits: edit("kafkakv/snapshot", "if r.Offset >= asOf {", "if r.Offset > asOf {"),
			Check: check("TestFreshReadersAgree"),
		},
		{
			Name: "kv-snapshot-too-old", Bug: "a snapshot is taken although records behind it are gone",
			Edits: edit("kafkakv/snapshot", "x.asOf < p.from ||", ""),
			Check: check("TestFreshReadersAgree"),
		},
		{
			Name: "kv-newer-void", Bug: "what a newer version writes is void for an older one alone",
			Edits: edit("kafkakv/command", "return nil, fmt.Errorf(\"%w: %d\", errNewer, b[4])", "return nil, errDamaged"),
			Check: check("TestNewerVersionStopsReading"),
		},
		{
			Name: "kv-request-forgotten", Bug: "a snapshot leaves out what was applied under requests",
			Edits: edit("kafkakv/snapshot", "w.add(appendAnswer([]byte{entryAnswer}, a))", "_ = a"),
			Check: check("TestFreshReadersAgree"),
		},
	}
}

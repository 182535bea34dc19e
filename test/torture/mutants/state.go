package mutants

import "github.com/ferrymq/ferry/test/torture/overlay"

// stateMutants are bugs of leaders, schedules and named values, found by their torture in memory.
func stateMutants() []Mutant {
	edit := func(file, search, replace string) []overlay.Edit {
		return []overlay.Edit{{File: file + ".go", Search: search, Replace: replace}}
	}
	check := func(fault string) Check {
		return Check{Package: "./test/torture/state", Run: "TestMemory/" + fault + "$"}
	}
	return []Mutant{
		{
			Name: "lead-ends-late", Bug: "the context of a leader ends when another leads already",
			Edits: edit("internal/leasekeeper/run", "return lease - lease/10", "return lease + lease/10"),
			Check: check("leader"),
		},
		{
			Name: "fence-of-anybody", Bug: "a fence asks whether there is a lease, not whose",
			Edits: edit("internal/kv/bucket", "b.Get(w.Fence.Name, now).Epoch != w.Fence.Epoch",
				"b.Get(w.Fence.Name, now).Epoch == 0"),
			Check: check("leader"),
		},
		{
			Name: "fence-of-revisions", Bug: "a lease that was renewed has another epoch",
			Edits: edit("internal/kv/bucket", "\tif v.epoch == 0 {\n\t\tv.epoch = b.revision",
				"\tif v.epoch == 0 || w.If != 0 {\n\t\tv.epoch = b.revision"),
			Check: check("values"),
		},
		{
			Name: "request-forgotten", Bug: "a write that is repeated under its request is made again",
			Edits: edit("internal/kv/bucket", "if known, ok := b.requests.find(w.Request, now); ok {",
				"if known, ok := b.requests.find(w.Request, now); ok && w.If != 0 {"),
			Check: check("values"),
		},
		{
			Name: "tick-of-any-id", Bug: "the message of a tick has an id of its own each time it is taken",
			Edits: edit("schedule/tick", "m.ID, m.OwnID = fireID(s.Name, epoch, at), true\n",
				"m.ID, m.OwnID = fireID(s.Name, uint64(time.Now().UnixNano()), at), true\n"),
			Check: check("schedules"),
		},
		{
			Name: "tick-after-the-noting", Bug: "a tick is noted as taken before it is published",
			Edits: edit("schedule/serve", "\tfor i, err := range settle(ctx, sub, list) {\n", "\tfor _, t := range all "+
				"{\n\t\tif note := t.note(); note != nil {\n\t\t\ts.note(ctx, *note)\n\t\t}\n\t}\n"+
				"\tfor i, err := range settle(ctx, sub, list) {\n"),
			Check: check("schedules"),
		},
		{
			Name: "tick-before-its-time", Bug: "a tick is laid for half a second before its time",
			Edits: edit("schedule/tick", "At: d.due(at)}", "At: d.due(at).Add(-time.Second / 2)}"),
			Check: check("schedules"),
		},
		{
			Name: "tick-lease-too-long", Bug: "the tick of a taker that was killed is taken again after twice its lease",
			Edits: edit("schedule/serve", "Lease: s.o.Lease,", "Lease: 2 * s.o.Lease,"),
			Check: check("schedules"),
		},
	}
}

// redisStateMutants are those of named values on Redis, found by processes that are harmed.
func redisStateMutants() []Mutant {
	check := func(test string) Check {
		return Check{Package: "./test/torture/state", Run: test + "/redis$"}
	}
	return []Mutant{
		{
			Name: "kv-fence-before-the-step", Bug: "a fence is looked at before the step that it guards",
			Edits: []overlay.Edit{{File: "internal/rediskv/rediskv.go", Search: "	return w.Check()\n}\n",
				Replace: `	if w.Fence != nil {
		vs, err := k.Get(ctx, bucket, w.Fence.Name)
		if err != nil {
			return err
		}
		if vs[0].Epoch != w.Fence.Epoch {
			return w.FenceLost()
		}
		w.Fence = nil
	}
	return w.Check()
}
`}},
			// seconds of torture may see no lost fence
			Check: Check{Package: "./driver/redis", Run: "TestDriver$/kv/fence_inside_the_step$"},
		},
		{
			Name: "kv-request-forgotten", Bug: "a write that is repeated under its request is made again",
			Edits: []overlay.Edit{{File: "internal/rediskv/lua/apply.lua", Search: "  if known then return known end\n",
				Replace: ""}},
			Check: check("TestValues"),
		},
		{
			Name: "kv-ends-early", Bug: "a value ends at half its TTL",
			Edits: []overlay.Edit{{File: "internal/rediskv/lua/apply.lua", Search: "int(now + 1 + w.ttl) --",
				Replace: "int(now + 1 + w.ttl / 2) --"}},
			// some seconds of torture may see no value end
			Check: Check{Package: "./driver/redis", Run: "TestDriver$/kv/expires$"},
		},
	}
}

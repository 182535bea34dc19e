package mutants

import "github.com/ferrymq/ferry/test/torture/overlay"

// uniqueMutants are bugs of unique messages.
func uniqueMutants() []Mutant {
	edit := func(file, search, replace string) []overlay.Edit {
		return []overlay.Edit{{File: file + ".go", Search: search, Replace: replace}}
	}
	check := func(test string) Check { return Check{Package: "./internal/unique", Run: test + "$"} }
	return []Mutant{
		{
			Name: "unique-freed-by-one-group", Bug: "the first group that settles a unique message frees its id",
			Edits: edit("internal/unique/settle", "if len(all) == 0 || len(all) == 1 && all[0] == t.settled.group {",
				"if len(all) >= 0 {"),
			Check: check("TestEveryGroupCounts"),
		},
		{
			Name: "unique-freed-by-retry", Bug: "a failed attempt frees the id of a unique message",
			Edits: edit("worker/unique", "return o == driver.Ack ||", "return o == driver.Ack || o == driver.Retry ||"),
			Check: check("TestTakenUntilSettled"),
		},
		{
			Name: "unique-not-yet-is-gone", Bug: "a unique message that is about to be stored counts as gone",
			Edits: edit("internal/unique/claim", "if there.Stored && k.gone(", "if k.gone("),
			Check: check("TestNotYetStored"),
		},
		{
			Name: "unique-unknown-freed", Bug: "a publish of which nobody knows whether it was applied frees its id",
			Edits: edit("sender", "case !errors.Is(r.Err, ErrUnknown) && !errors.Is(r.Err, ErrClosed):", "default:"),
			Check: check("TestPublishThatFailed"),
		},
		{
			Name: "unique-epoch-kept", Bug: "an id that is taken over keeps its epoch, and a late removal frees it",
			Edits: edit("internal/unique/claim", "Delete: true, If: driver.Condition(found.Revision), Quiet: true}, c.first())",
				"Data: c.first().Data, TTL: c.ttl, If: driver.Condition(found.Revision), Quiet: true})"),
			Check: check("TestTakenOverIsAnothers"),
		},
		{
			Name: "unique-removal-not-fenced", Bug: "the removal for a message that is settled frees the id of the next one",
			Edits: edit("internal/unique/settle", "Fence: &driver.Fence{Name: t.at.name, Epoch: t.settled.epoch}, ", ""),
			Check: check("TestTakenOverIsAnothers"),
		},
		{
			Name: "unique-emit-keeps", Bug: "the follow-up of a handler that failed keeps its id",
			Edits: edit("worker/unique", "\t\t\tnames.UndoLater(claim.id)\n", ""),
			Check: check("TestEmit"),
		},
	}
}

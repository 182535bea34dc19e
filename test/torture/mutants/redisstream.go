package mutants

import "github.com/ferrymq/ferry/test/torture/overlay"

// onStreams runs cases of the conformance suite on a real server, ofStreams a test of the driver itself, tortureStreams
// one run of the torture smoke.
func onStreams(cases string) Check { return ofStreams("TestDriver$/" + cases) }
func ofStreams(test string) Check  { return Check{Package: "./driver/redisstream", Run: test} }
func tortureStreams(run string) Check {
	return Check{Package: "./test/torture/rig", Run: "TestRedisStreamSmoke/" + run + "$"}
}

// redisStreamMutants are the same bugs in the scripts of the Redis Streams driver, and those of its partitions and
// their owners.
func redisStreamMutants() []Mutant {
	lua := func(file, search, replace string) []overlay.Edit {
		return []overlay.Edit{{File: "driver/redisstream/lua/" + file + ".lua", Search: search, Replace: replace}}
	}
	return []Mutant{
		{
			Name: "time-in-ids", Bug: "ids of entries are made of the server's time, which may be set back",
			Edits: lua("fan", "call('XADD', STREAM, '*', ", "call('XADD', STREAM, now .. '-*', "),
			Check: tortureServers("step-clock"),
		},
		{
			Name: "ack-before-store", Bug: "a publish is acknowledged, and some messages are then not stored",
			Edits: lua("fan", "  local id = call('XADD', ", "  local id = string.sub(name, -2) == '07' and '1-1' or "+
				"call('XADD', "),
			Check: tortureStreams("none"),
		},
		{
			Name: "lease-not-checked", Bug: "an acknowledgement is accepted when its lease is over",
			Edits: lua("ack_each", "    elseif not valid then\n      results[i] = 'l'\n", ""),
			Check: ofStreams("TestLapsedLeaseIsRefused"),
		},
		{
			Name: "plain-token-not-checked",
			Bug:  "an acknowledgement of plain messages is accepted from one who held them before",
			Edits: lua("ack_each", "    if not v or v ~= mark and string.sub(v, 1, #token) ~= token or seen[id] then",
				"    hold[i] = v or mark\n    v = hold[i]\n    if false then"),
			Check: ofStreams("TestEndedDeliveryIsRefused"),
		},
		{
			Name:  "whole-lease-not-checked",
			Bug:   "an acknowledgement of a claim that is noted whole is accepted when its lease is over",
			Edits: lua("ack_plain", "    if not letters or not valid_lease(t) then", "    if not letters then"),
			Check: ofStreams("TestLapsedLeaseIsRefused"),
		},
		{
			Name: "whole-claim-acked-twice", Bug: "what is left of a claim is not looked at when it is acknowledged",
			Edits: lua("ack_plain",
				"    if string.sub(letters, first, last) ~= string.rep('h', length) then return nil end\n", ""),
			Check: ofStreams("TestEndedDeliveryIsRefused"),
		},
		{
			Name: "whole-beside-older", Bug: "claims are noted in a way that an older member cannot read",
			Edits: lua("own", "  whole = whole and string.sub(m, -2) == '.2'\n", ""),
			Check: ofStreams("TestNothingIsWholeBesideOlderMembers"),
		},
		{
			Name: "whole-lease-forgotten", Bug: "what an older program has ended the lease of is in flight for ever",
			Edits: lua("spread", "        redis.call('ZADD', of_group .. 'lease', 0, token)\n", ""),
			Check: ofStreams("TestWholeClaimWithoutALeaseComesAgain"),
		},
		{
			Name: "whole-lease-ended-again", Bug: "an older program that looks often ends the lease of a claim again and again",
			Edits: lua("own", "not call('ZSCORE', of(g, 'lease'), token) then one_by_one(g) end",
				"not call('ZSCORE', of(g, 'lease'), token) then timer(of(g, 'lease'), now, token) end"),
			Check: ofStreams("TestWholeClaimWithoutALeaseIsSpread"),
		},
		{
			Name: "outcome-overtakes", Bug: "an outcome stands although one of its key before it, in the same call, was refused",
			Edits: []overlay.Edit{{File: "internal/redisshell/member.go",
				Search: "errs[i] = behind.Refuse(ss[i].Delivery)\n\t\treturn", Replace: "return"}},
			Check: ofStreams("TestNoOutcomeOvertakesARefusedOne"),
		},
		{
			Name: "stale-owner-claims", Bug: "a claim does not ask who owns the partition",
			Edits: lua("owned", "if owner[1] ~= ARGV[3] or owner[2] ~= ARGV[4] or tonumber(owner[3]) <= at then",
				"if not owner[1] then"),
			Check: ofStreams("TestStaleOwnerIsRefused"),
		},
		{
			Name: "read-not-fenced", Bug: "an owner that was paused reads what is not its own any more",
			Edits: []overlay.Edit{{File: "driver/redisstream/read.go", Search: `p.Do(ctx, "WATCH", `,
				Replace: `p.Do(ctx, "EXISTS", `}},
			Check: ofStreams("TestOwnerPausedBeforeItReads"),
		},
		{
			Name: "read-and-forgotten", Bug: "what a dead owner had read and not leased stays pending for ever",
			Edits: lua("claim", "if group[3] then recover(g) end\n", ""),
			Check: ofStreams("TestEntriesReadByOneWhoDied"),
		},
		{
			Name: "claim-forgotten", Bug: "what an unanswered claim took waits for the end of its lease",
			Edits: lua("lost", "        take_out(g, id, s)\n        come_back(g, id, s)\n", ""),
			Check: ofStreams("TestLostAnswerOfAClaim"),
		},
		{
			Name: "followers-acked-alone", Bug: "followers are acknowledged in an earlier step than their head",
			Edits: lua("ack_each", "if spoilt then", "if false then"),
			Check: ofStreams("TestFollowersAreNotAcknowledgedBeforeTheirHead"),
		},
		{
			Name: "follower-released-early", Bug: "the next of a key starts while its head waits for a retry",
			Edits: lua("state", "  if strict(g, s) and not tail then call('ZADD', of(g, 'chain'), 0, member(s, id)) end\n", ""),
			Check: onStreams("order/strict_followers_wait"),
		},
		{
			Name: "pending-deleted", Bug: "the consumer of a member that is gone is deleted with what is pending in its name",
			Edits: lua("retire", " and f.pending == 0 then", " then"),
			Check: ofStreams("TestConsumersGoWithTheirMembers"),
		},
		{
			Name: "trim-past-unsettled", Bug: "retention removes what a group has not settled, unasked",
			Edits: lua("trim", "  elseif f[4] == '1' and free(id) then", "  elseif free(id) then"),
			Check: ofStreams("TestRetention"),
		},
		{
			Name: "redelivery-burns-attempt", Bug: "a lost lease counts as a failed attempt",
			Edits: lua("advance", "    lose(x.s)\n", "    lose(x.s)\n    x.s.f = x.s.f + 1\n"),
			Check: onStreams("begin/begun_losses_count"),
		},
		{
			Name: "loss-not-counted", Bug: "a lost lease counts nothing, so that a killer message lives for ever",
			Edits: lua("state", "  if s.b or not s.h and s.x == 0 then s.x = s.x + 1 end\n", ""),
			Check: onStreams("begin/begun_losses_count"),
		},
		{
			Name: "first-loss-not-counted", Bug: "the first lost lease counts only if its delivery had begun",
			Edits: lua("state", "  if s.b or not s.h and s.x == 0 then", "  if s.b then"),
			Check: onStreams("begin/unseen_losses_do_not_count"),
		},
		{
			Name: "unseen-loss-counted", Bug: "every lost lease counts, so that a message dies that no handler saw",
			Edits: lua("state", "  if s.b or not s.h and s.x == 0 then s.x", "  if true then s.x"),
			Check: onStreams("begin/unseen_losses_do_not_count"),
		},
		{
			Name: "begin-not-stored", Bug: "that a handler is about to start is not stored",
			Edits: lua("begin", "    save(g, id, s)\n", ""),
			Check: onStreams("begin/begun_losses_count"),
		},
		{
			Name: "count-not-taken-back", Bug: "a lost delivery counts although its holder is heard of again",
			Edits: lua("hear", "      s.x = s.x - 1\n", ""),
			Check: onStreams("begin/late_(extend|settle)"),
		},
		{
			Name: "close-takes-nothing-back", Bug: "a holder that closes in order counts as dead for what it had lost",
			Edits: lua("leave", "    hear(id, ARGV[n + 1])\n", ""),
			Check: ofStreams("TestCloseTakesItsCountBack"),
		},
		{
			Name: "drain-keeps-partitions", Bug: "a member that drains keeps what it owns until it closes",
			Edits: lua("own", "  if wants or not owner[4] and not drains then epoch",
				"  if wants or drains or not owner[4] then epoch"),
			Check: ofStreams("TestDrainGivesUpEveryPartition"),
		},
		{
			Name: "drain-is-planned-with", Bug: "partitions are planned for a member that drains",
			Edits: lua("own", "  if not leaving or not call('ZSCORE', of(g, 'leaving'), m) then staying",
				"  if true then staying"),
			Check: ofStreams("TestDrainGivesUpEveryPartition"),
		},
		{
			Name: "lease-too-short", Bug: "a lease ends at half its time",
			Edits: append(lua("quick", "at + ARGV[7], tonumber(ARGV[8])", "at + ARGV[7] / 2, tonumber(ARGV[8])"),
				lua("quick", "ARGV[5], at + ARGV[7])\n", "ARGV[5], at + ARGV[7] / 2)\n")...),
			Check: onStreams("lease/extend_keeps_it"),
		},
		{
			Name: "release-to-tail", Bug: "a released message goes behind all others",
			Edits: lua("settle", "        if tail then s.p, s.n = place(), now end\n",
				"        if tail or outcome == 'l' then s.p, s.n = place(), now end\n"),
			Check: onStreams("release/to_the_head"),
		},
		{
			Name: "close-keeps-leases", Bug: "a subscription that closes does not return what it holds",
			Edits: lua("leave", "for n = 5, #ARGV, 2 do\n", "for n = 5, 1, 2 do\n"),
			Check: onStreams("stop/close_returns"),
		},
		{
			Name: "dead-letter-dropped", Bug: "a message that dies is not kept",
			Edits: lua("settle", "      bury(g, id, s, ARGV[3], failure)\n", "      finish(g, id, 'dropped')\n"),
			Check: onStreams("dead/complete"),
		},
		{
			Name: "parse-error-dropped", Bug: "what cannot be decoded is thrown away",
			Edits: lua("read", "  call('ZADD', INVALID, sequence(), id)\n", ""),
			Check: onStreams("invalid"),
		},
		{
			Name: "due-truncated", Bug: "a due time is cut to whole seconds",
			Edits: lua("store", "when = soon + x.delay end\n", "when = soon + floor(x.delay / 1000) * 1000 end\n"),
			Check: onStreams("delay/never_early"),
		},
		{
			Name: "expired-delivered", Bug: "messages live a second longer than they should",
			Edits: lua("store", "x.ttl > 0 and soon + x.ttl or 0", "x.ttl > 0 and soon + x.ttl + 1000 or 0"),
			Check: onStreams("expiry/never_delivered"),
		},
		{
			Name: "bytes-not-decremented", Bug: "the bytes of acknowledged messages still count",
			Edits: lua("ack_each", "string.format('%.0f', topic[4] - bytes)", "topic[4]"),
			Check: tortureStreams("none"),
		},
	}
}

package mutants

import "github.com/ferrymq/ferry/test/torture/overlay"

// onRedis runs cases of the conformance suite on a real server, tortureRedis one run of the torture smoke.
func onRedis(cases string) Check {
	return Check{Package: "./driver/redis", Run: "TestDriver$/" + cases}
}
func tortureRedis(run string) Check {
	return Check{Package: "./test/torture/rig", Run: "TestRedisSmoke/" + run + "$"}
}

// tortureServers runs one of the torture runs on a real server that are only for this.
func tortureServers(run string) Check {
	return Check{Package: "./test/torture/rig", Run: "TestRedisTorture/" + run + "$", Tags: "torture"}
}

// redisMutants are the same bugs in the scripts of the Redis driver, and those of the worker where a server is far
// away.
func redisMutants() []Mutant {
	lua := func(file, search, replace string) []overlay.Edit {
		return []overlay.Edit{{File: "driver/redis/lua/" + file + ".lua", Search: search, Replace: replace}}
	}
	return []Mutant{
		{
			Name: "synced-too-late", Bug: "the file of the server ends seconds before what it must have synced",
			Edits: []overlay.Edit{{File: "test/torture/rig/redisfiles.go", Search: "min(then.Size()+torn, now.Size())",
				Replace: "min(then.Size()/4+torn, now.Size())"}},
			Check: tortureServers("power-cut"),
		},
		{
			Name: "outcome-overtakes", Bug: "an outcome stands although one of its key before it, in the same call, was refused",
			Edits: []overlay.Edit{
				{File: "internal/redisshell/member.go", Search: "errs[i] = behind.Refuse(ss[i].Delivery)\n\t\treturn",
					Replace: "return"},
				{File: "internal/redisshell/member.go", Search: "\t\tif err == nil {\n\t\t\terr = " +
					"behind.Refuse(x.Delivery)\n\t\t}\n", Replace: ""},
			},
			Check: Check{Package: "./driver/redis", Run: "TestNoOutcomeOvertakesARefusedOne"},
		},
		{
			Name: "second-signal-ends", Bug: "a second SIGTERM ends a process that drains",
			Edits: []overlay.Edit{{File: "test/torture/child/child.go", Search: "\tdefer stop()\n\treturn o.run(ctx, stdin)",
				Replace: "\tcontext.AfterFunc(ctx, stop)\n\treturn o.run(ctx, stdin)"}},
			Check: tortureServers("term-twice"),
		},
		{
			Name: "no-file-no-worker", Bug: "a worker that can open no connection does not try again",
			Edits: []overlay.Edit{{File: "worker/fetcher.go", Search: "\t\t\tc.e.setHealth(c, Reconnecting, " +
				"err)\n\t\t\tdelay.sleep(ctx)\n", Replace: "\t\t\t<-ctx.Done()\n"}},
			Check: tortureServers("few-files"),
		},
		{
			Name: "slow-bodies-dropped", Bug: "bodies that are not there within 900 ms are taken for bodies that are gone",
			Edits: []overlay.Edit{{File: "driver/redis/batch.go", Search: "\t\tif bodies, err = sh.bodies(ctx, items); err != " +
				"nil {\n", Replace: `		soon, cancel := context.WithTimeout(ctx, 900*time.Millisecond)
		bodies, err = sh.bodies(soon, items)
		slow := soon.Err() != nil
		if cancel(); slow {
			bodies, err = make(redisconn.Reply, len(items)), nil
		}
		if err != nil {
`}},
			Check: tortureServers("low-bandwidth"),
		},
		{
			Name: "not-served-not-asked", Bug: "a claim that is not answered for two seconds, because nobody serves its " +
				"connection, is never asked for again",
			Edits: []overlay.Edit{{File: "driver/redis/receive.go", Search: "\tcase <-ctx.Done():\n\t}\n\ts.Mu.Lock()\n\t" +
				"defer s.Mu.Unlock()\n\tselect {\n", Replace: `	case <-time.After(2 * time.Second):
		<-ctx.Done()
	case <-ctx.Done():
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	select {
`}},
			Check: tortureServers("few-files-server"),
		},
		{
			Name: "slow-ack-asked-anew", Bug: "an acknowledgement that is answered after 500 ms is sent again, as another " +
				"one, and refused",
			Edits: []overlay.Edit{{File: "driver/redis/settle.go", Search: "\tif done, err := s.ackAll(ctx, ss, run); done {\n",
				Replace: "\tsent := time.Now()\n\tif done, err := s.ackAll(ctx, ss, run); done && time.Since(sent) < " +
					"500*time.Millisecond {\n"}},
			Check: tortureServers("little-cpu-server"),
		},
		{
			Name: "memory-kept", Bug: "a worker keeps what each message needed when it is settled",
			Edits: []overlay.Edit{
				{File: "worker/settler.go", Search: "\tspareRuns []*run\n", Replace: "\tspareRuns []*run\n\tkept [][]byte\n"},
				{File: "worker/settler.go", Search: "\tr.state = settling\n\tc.outbox.list",
					Replace: "\tr.state = settling\n\tkept := make([]byte, 256<<10)\n\tfor i := range kept {\n\t\tkept[i] = 1\n" +
						"\t}\n\tc.outbox.kept = append(c.outbox.kept, kept)\n\tc.outbox.list"},
			},
			Check: tortureServers("little-memory"),
		},
		{
			Name: "storm-is-the-end", Bug: "a worker whose connection breaks does not try again",
			Edits: []overlay.Edit{{File: "worker/fetcher.go", Search: "\t\t\tc.e.setHealth(c, Reconnecting, " +
				"err)\n\t\t\tdelay.sleep(ctx)\n", Replace: "\t\t\t<-ctx.Done()\n"}},
			Check: tortureServers("storm"),
		},
		{
			Name: "stored-form-changed", Bug: "the stored form of a message is another one, and says so, and nobody reads the " +
				"old one",
			Edits: []overlay.Edit{{File: "internal/envelope/envelope.go", Search: "const Version = 1\n",
				Replace: "const Version = 2\n"}},
			Check: tortureServers("upgrade"),
		},
		{
			Name: "ack-before-store", Bug: "a publish is acknowledged, and some messages are then not stored",
			Edits: lua("storing", "    if #items > 0 then fan_out", "    if #items > 0 and seq % 31 ~= 7 then fan_out"),
			Check: tortureRedis("none"),
		},
		{
			Name: "lease-not-checked", Bug: "a settlement needs only the number of the message, not the token of its lease",
			Edits: lua("settling", "  local l = holder_of(o, token, seq)\n", `  local l = holder_of(o, token, seq)
  for _, other in ipairs(call('HKEYS', KEYS[o + LEASE])) do
    local held = lease_of(o, other)
    if held and held.items[seq] then l = held end
  end
`),
			Check: onRedis("lease/stale_settle_refused"),
		},
		{
			Name: "split-not-found", Bug: "a settlement looks only where the lease was before an extension that is under way",
			Edits: lua("leases", "then return l end\n  for _, other in ipairs(leases_of(o, claim_of(token))) do\n",
				"then return l end\n  for _, other in ipairs({}) do\n"),
			Check: Check{Package: "./driver/redis", Run: "TestCallsCrossAnExtend"},
		},
		{
			Name: "follower-released-early", Bug: "the next of a key starts while its head waits for a retry",
			Edits: lua("chain", "  return v and match(v, '^%d+ %d+ %d+ %d+ (%a)') == 'W'\n", "  return false\n"),
			Check: onRedis("order/strict_followers_wait"),
		},
		{
			Name: "dedup-before-success", Bug: "a dedup id is remembered before the message is accepted",
			Edits: lua("storing", "      if text then refused = true end\n", "      if text then refused = true end\n      if "+
				"dedup then call('HSET', DEDUP, dedup, (soon + window) .. ' 1 ' .. id) end\n"),
			Check: onRedis("dedup/not_of_a_refused"),
		},
		{
			Name: "due-truncated", Bug: "a due time is cut to whole seconds",
			Edits: lua("storing", "or soon + delay\n", "or soon + floor(delay / 1000) * 1000\n"),
			Check: tortureRedis("none"),
		},
		{
			Name: "parse-error-dropped", Bug: "what cannot be decoded is thrown away",
			Edits: lua("invalid", "\nif body then", "\nif false then"),
			Check: onRedis("invalid"),
		},
		{
			Name: "release-to-tail", Bug: "a released message goes behind all others",
			Edits: lua("settling", "    if after == '0' then come_back(o, item, s) else", `    if after == '0' then
      s.letter, s.item = 'R', renewed(item)
      save(o, seq, s)
      unhold(o, item)
      join(o, s.item, true)
    else`),
			Check: onRedis("release/to_the_head"),
		},
		{
			Name: "close-keeps-leases", Bug: "a subscription that closes does not return what it holds",
			Edits: lua("leave", "for i = 3, 2 + claims do\n", "for i = 3, 2 do\n"),
			Check: onRedis("stop/close_returns"),
		},
		{
			Name: "counter-not-decremented", Bug: "a message whose wait is over still counts as waiting",
			Edits: lua("state", "  tally(o, 'waiting', -1)\n", ""),
			Check: onRedis("retry"),
		},
		{
			Name: "bytes-not-decremented", Bug: "the bytes of acknowledged messages still count",
			Edits: lua("acking", "    call('HINCRBY', TOPIC, 'bytes', bytes)\n", ""),
			Check: tortureRedis("none"),
		},
		{
			Name: "redelivery-burns-attempt", Bug: "a lost lease counts as a failed attempt",
			Edits: lua("losses", "  s.cause = LOST\n", "  s.cause, s.failed = LOST, s.failed + 1\n"),
			Check: onRedis("lease/expiry_redelivers"),
		},
		{
			Name: "loss-not-counted", Bug: "a lost lease counts nothing, so that a killer message lives for ever",
			Edits: lua("losses", "  if begun or not r.lapsed and tonumber(s.lost) == 0 then s.lost = s.lost + 1 end\n", ""),
			Check: onRedis("begin/begun_losses_count"),
		},
		{
			Name: "first-loss-not-counted", Bug: "the first lost lease counts nothing unless its handler had begun",
			Edits: lua("losses", "  if begun or not r.lapsed and tonumber(s.lost) == 0 then", "  if begun then"),
			Check: onRedis("begin/unseen_losses_do_not_count"),
		},
		{
			Name: "unseen-loss-counted", Bug: "every lost lease counts, so that an outage kills what no handler saw",
			Edits: lua("losses", "  if begun or not r.lapsed and tonumber(s.lost) == 0 then s.lost", "  if true then s.lost"),
			Check: onRedis("begin/unseen_losses_do_not_count"),
		},
		{
			Name: "begin-not-stored", Bug: "that a handler begins is answered, and not stored",
			Edits: lua("begin", "  if held then begin(FIRST, token, seq) end\n", ""),
			Check: onRedis("begin/begun_losses_count"),
		},
		{
			Name: "count-not-taken-back", Bug: "a holder that is heard of again still counts as dead",
			Edits: lua("losses", "        s.lost = math.max(0, s.lost - 1)\n", ""),
			Check: onRedis("begin/late"),
		},
		{
			Name: "lease-too-short", Bug: "a first lease ends at half its time",
			Edits: lua("claiming", "till = instance .. '\\n' .. table.concat(items, '\\n'), {}, soon + ARGV[4]\n",
				"till = instance .. '\\n' .. table.concat(items, '\\n'), {}, soon + floor(ARGV[4] / 2)\n"),
			Check: onRedis("lease/expiry_redelivers"),
		},
		{
			Name: "later-lease-too-short", Bug: "the lease of a message that came back ends at half its time",
			Edits: lua("claim", "soon + ARGV[4], 'L' .. token)\n  tally(", "soon + floor(ARGV[4] / 2), 'L' .. token)\n  tally("),
			Check: onRedis("begin/begun_losses_count"),
		},
		{
			Name: "dead-letter-dropped", Bug: "a message that dies is not kept",
			Edits: lua("settling", "    bury(o, seq, s, instance, failure)\n", "    done(o, seq, 'dropped')\n"),
			Check: onRedis("dead/complete"),
		},
		{
			Name: "expired-delivered", Bug: "messages live a second longer than they should",
			Edits: lua("storing", "= soon + ttl\n", "= soon + ttl + 1000\n"),
			Check: onRedis("expiry/never_delivered"),
		},
		{
			Name: "retry-burns-nothing", Bug: "a failure is not counted, so that a message is retried for ever",
			Edits: lua("settling", "  s.failed = s.failed + 1\n", ""),
			Check: onRedis("retry"),
		},
		{
			Name: "repeat-not-recognised", Bug: "a settlement that is sent again, because its answer was lost, is carried out " +
				"again",
			Edits: lua("settle", "if before then return before end\n", ""),
			Check: Check{Package: "./driver/redis", Run: "TestEveryScriptCanBeRepeated"},
		},
		{
			Name: "exchange-unfenced", Bug: "a settlement that takes a claim along does not look whether its lease is over",
			Edits: lua("exchange", "if looked and not known then", "if looked and known ~= 'ok' then"),
			Check: Check{Package: "./driver/redis", Run: "TestExchangeIsFenced"},
		},
		{
			Name: "exchange-without-room", Bug: "a claim that goes with a settlement is made although that makes no room",
			Edits: lua("exchange", "elseif fine and (acked == 'ok' or ARGV[12] ~= '1') then", "elseif fine then"),
			Check: Check{Package: "./driver/redis", Run: "TestExchangeNeedsRoom"},
		},
		{
			Name: "exchange-wakes-nobody", Bug: "what a settlement lets go is announced to nobody when it claims something " +
				"itself",
			Edits: lua("exchange", "if woken and call", "if false and call"),
			Check: Check{Package: "./driver/redis", Run: "TestExchangeWakesOthers"},
		},
		{
			Name: "refusal-ends-lease", Bug: "a call that the server refused for a moment is taken for a lease that is lost",
			Edits: []overlay.Edit{{File: "internal/redisconn/errors.go", Search: "\t\t\tkind := driver.ErrNotApplied\n",
				Replace: "\t\t\tkind := driver.ErrLeaseLost\n"}},
			Check: tortureRedis("refused"),
		},
		{
			Name: "renewer-stopped", Bug: "the worker does not renew its leases",
			Edits: []overlay.Edit{{File: "worker/renewer.go", Search: "\terrs := c.conn.Extend(ctx, ds)\n",
				Replace: "\terrs := make([]error, len(ds))\n"}},
			Check: tortureRedis("slow-handler"),
		},
		{
			Name: "renewer-starved", Bug: "a worker that hardly runs does not renew its leases",
			Edits: []overlay.Edit{{File: "worker/renewer.go", Search: "\terrs := c.conn.Extend(ctx, ds)\n",
				Replace: "\terrs := make([]error, len(ds))\n"}},
			Check: tortureServers("little-cpu"),
		},
		{
			Name: "worker-ignores-keys", Bug: "the worker runs messages of one key at the same time",
			Edits: []overlay.Edit{{File: "worker/lanes.go", Search: "\tkey := r.d.Key\n", Replace: "\tkey := \"\"\n"}},
			Check: tortureRedis("none"),
		},
		{
			Name: "client-clock", Bug: "the worker reckons the age of a message with its own clock",
			Edits: []overlay.Edit{{File: "worker/retrier.go", Search: "d.ClaimedAt.Sub(d.PublishedAt)",
				Replace: "time.Since(d.PublishedAt)"}},
			Check: tortureRedis("clock"),
		},
	}
}

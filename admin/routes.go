package admin

import "github.com/ferrymq/ferry/auth"

// table is every route: how it is asked for, its name in the actions and in OpenAPI, what it does, which scope it takes for
// the topic that stands where, and the function that answers.
func table() []route {
	const view, operate, admin = auth.View, auth.Operate, auth.Admin
	return []route{
		// The broker.
		reads(get("/broker", "broker.show", "What the broker can do, and what it uses", view, inEach), (*API).showBroker),
		reads(get("/identity", "identity.show", "Who asks, and what they may do", view, inEach), (*API).showIdentity),
		reads(get("/masks", "mask.list", "What is hidden of messages, from everybody", view, nowhere), (*API).listMasks),
		reads(get("/health", "health.show", "A verdict on the whole system, with reasons", view, nowhere), (*API).showHealth),
		reads(get("/doctor", "broker.diagnose", "Version and settings of the backend, and what they mean", operate, nowhere), (*API).diagnose),
		reads(get("/figures", "figures.show", "Counts and rates of every queue, as they were seen last", view, inEach), (*API).showFigures),
		writes(get("/figures/events", "figures.stream", "The same, live", view, inEach), eventStream, (*API).streamFigures),
		reads(get("/series", "figures.series", "The figures of all topics together over time, for charts", view, inEach), (*API).showTotals),
		reads(get("/scale/{topic}/{group}", "group.scale", "How many instances a group needs, for autoscalers", auth.Metrics, inPath), (*API).scale),

		// Topics and their groups.
		reads(get("/topics", "topic.list", "List topics with their counts", view, inEach), (*API).listTopics),
		reads(get("/topics/{topic}", "topic.show", "Show a topic", view, inPath), (*API).showTopic),
		acts(put("/topics/{topic}", "topic.put", "Make a topic, or change its configuration", admin, inPath), (*API).putTopic),
		does(del("/topics/{topic}", "topic.delete", "Remove a topic with everything in it", admin, inPath), (*API).deleteTopic),
		does(post("/topics/{topic}/pause", "topic.pause", "Stop deliveries of a topic", operate, inPath), (*API).pauseTopic),
		does(post("/topics/{topic}/resume", "topic.resume", "Let them go on", operate, inPath), (*API).resumeTopic),
		reads(get("/topics/{topic}/balance", "topic.balance", "Whether what came in equals what left and what is there", view, inPath), (*API).balance),
		acts(post("/topics/{topic}/audit", "topic.audit", "Look at every message of a topic, as an operation", admin, inPath), (*API).auditTopic),
		reads(get("/topics/{topic}/series", "topic.series", "Figures over time, for charts", view, inPath), (*API).showSeries),
		reads(get("/topics/{topic}/partitions", "topic.partitions", "Partitions, and how far groups are", view, inPath), (*API).partitions),
		reads(get("/topics/{topic}/retention", "topic.retention", "Bounds of the log of a topic", view, inPath), (*API).showRetention),
		does(put("/topics/{topic}/retention", "topic.retain", "Set them", admin, inPath), (*API).putRetention),
		acts(post("/topics/{topic}/trim", "topic.trim", "Apply them at once", operate, inPath), (*API).trim),
		acts(post("/topics/{topic}/purge", "topic.purge", "Delete messages that wait, by filter, as an operation", operate, inPath), (*API).purgeTopic),
		acts(post("/topics/{topic}/reschedule", "topic.reschedule", "Make messages due at another time, by filter, as an operation", operate, inPath), (*API).rescheduleTopic),
		reads(get("/topics/{topic}/groups/{group}", "group.show", "Show a group", view, inPath), (*API).showGroup),
		acts(put("/topics/{topic}/groups/{group}", "group.put", "Make a group", operate, inPath), (*API).putGroup),
		does(del("/topics/{topic}/groups/{group}", "group.delete", "Remove a group with what it has not settled", admin, inPath), (*API).deleteGroup),
		does(post("/topics/{topic}/groups/{group}/pause", "group.pause", "Stop deliveries of a group", operate, inPath), (*API).pauseGroup),
		does(post("/topics/{topic}/groups/{group}/resume", "group.resume", "Let them go on", operate, inPath), (*API).resumeGroup),
		acts(post("/topics/{topic}/groups/{group}/reset", "group.reset", "Start again from a position, as an operation", operate, inPath), (*API).resetGroup),
		acts(post("/topics/{topic}/groups/{group}/replay", "group.replay", "Make what is kept ready again, without skipping anything", operate, inPath), (*API).replayLog),
		reads(get("/topics/{topic}/groups/{group}/pending", "group.pending", "What a group has read and not settled", view, inPath), (*API).listPending),

		// Messages.
		reads(get("/topics/{topic}/messages", "message.list", "List and search messages by state, group, key and filter", view, inPath), (*API).listMessages),
		acts(post("/topics/{topic}/messages", "message.publish", "Publish a message", auth.Publish, inPath).upTo(maxPublish), (*API).publishMessage),
		reads(get("/topics/{topic}/messages/{id}", "message.show", "A message as every group sees it, with its history", view, inPath), (*API).showMessage),
		does(del("/topics/{topic}/messages/{id}", "message.cancel", "Remove a message that waits", operate, inPath), (*API).cancelMessage),
		does(post("/topics/{topic}/messages/{id}/reschedule", "message.reschedule", "Make a message that waits due at another time, or now", operate, inPath), (*API).rescheduleMessage),
		reads(get("/topics/{topic}/groups/{group}/results/{id}", "message.result", "How far a message is, and what its handler returned", view, inPath), (*API).showResult),
		writes(get("/topics/{topic}/tail", "topic.tail", "Messages as they come, live", view, inPath), eventStream, (*API).tailTopic),

		// Dead letters, and what could not be decoded.
		reads(get("/dead", "letter.list", "List and search dead letters", view, inQuery), (*API).listLetters),
		reads(get("/dead/tally", "letter.tally", "Count dead letters by error, reason, topic, group, key or day", view, inQuery), (*API).tallyLetters),
		writes(get("/dead/export", "letter.export", "Export dead letters", auth.Payload, inQuery), "application/x-ndjson", (*API).exportLetters),
		acts(post("/dead/import", "letter.import", "Publish what an export wrote", auth.Publish, inQuery).upTo(MaxBody), (*API).importLetters),
		acts(post("/dead/replay", "letter.replay", "Bring dead letters back to work, by filter, as an operation", operate, inBody), (*API).replayLetters),
		acts(post("/dead/remove", "letter.remove", "Delete dead letters for good, by filter, as an operation", operate, inBody), (*API).removeLetters),
		acts(post("/dead/expire", "letter.expire", "Delete the oldest dead letters beyond limits, as an operation", operate, inBody), (*API).expireLetters),
		reads(get("/dead/{topic}/{group}/{id}", "letter.show", "Show a dead letter", view, inPath), (*API).showLetter),
		acts(post("/dead/{topic}/{group}/{id}/replay", "letter.replay-one", "Bring one back to work, edited if need be", operate, inPath), (*API).replayLetter),
		does(del("/dead/{topic}/{group}/{id}", "letter.remove-one", "Delete one for good", operate, inPath), (*API).removeLetter),

		// Operations.
		reads(get("/operations", "operation.list", "List long work: waiting, running, or ended within a week", view, inEach), (*API).listOperations),
		writes(get("/operations/events", "operation.follow", "Those that are open, then each that changes, live", view, inEach), eventStream, (*API).followOperations),
		reads(get("/operations/{id}", "operation.show", "Show an operation", view, inEach), (*API).showOperation),
		writes(get("/operations/{id}/events", "operation.stream", "The same, live, until it has ended", view, inEach), eventStream, (*API).streamOperation),
		does(post("/operations/{id}/cancel", "operation.cancel", "End an operation; what it has done stays done", operate, inEach), (*API).cancelOperation),

		// Limits, blocks and breakers.
		reads(get("/limits", "limit.list", "List keys that are blocked, overridden or whitelisted", view, nowhere), (*API).listKeys),
		reads(get("/limits/changes", "limit.changes", "Who changed what, newest first", view, nowhere), (*API).listChanges),
		reads(get("/limits/rules", "limit.rules", "Rules that were set for limits and their groups", view, nowhere), (*API).listRules),
		does(put("/limits/{limit}/rule", "limit.set-rule", "Give a limit, or a group of it, another rule in every process", operate, nowhere), (*API).setRule),
		does(del("/limits/{limit}/rule", "limit.clear-rule", "Make the rule hold again that programs give", operate, nowhere), (*API).clearRule),
		reads(get("/limits/{limit}/keys/{key}", "limit.show", "Everything about one key", view, nowhere), (*API).showKey),
		reads(get("/limits/{limit}/keys/{key}/check", "limit.check", "Whether a message of the key would pass now", view, nowhere), (*API).checkKey),
		does(put("/limits/{limit}/keys/{key}/block", "limit.block", "Keep a key out", operate, nowhere), (*API).blockKey),
		does(del("/limits/{limit}/keys/{key}/block", "limit.unblock", "Let it in again", operate, nowhere), (*API).unblockKey),
		does(put("/limits/{limit}/keys/{key}/override", "limit.override", "Give a key a rule of its own for some time", operate, nowhere), (*API).overrideKey),
		does(del("/limits/{limit}/keys/{key}/override", "limit.clear", "End that before its time", operate, nowhere), (*API).clearOverride),
		does(put("/limits/{limit}/keys/{key}/whitelist", "limit.whitelist", "Let a key pass always", operate, nowhere), (*API).whitelistKey),
		does(del("/limits/{limit}/keys/{key}/whitelist", "limit.unwhitelist", "Make the rules hold for it again", operate, nowhere), (*API).unwhitelistKey),
		reads(get("/breakers", "breaker.list", "Breakers of all processes", view, nowhere), (*API).listBreakers),
		does(put("/breakers/{name}", "breaker.force", "Make a breaker open or closed everywhere, or leave it to itself", operate, nowhere), (*API).forceBreaker),

		// Customer service of WeCom.
		reads(get("/wecom/accounts", "wecom.accounts", "Accounts: how far they are pulled, callbacks, problems, and what waits", view, nowhere), (*API).listWeComAccounts),

		// Processes and schedules.
		reads(get("/members", "member.list", "Processes that joined, with their workers", view, nowhere), (*API).listMembers),
		reads(get("/members/{member}", "member.show", "Show one", view, nowhere), (*API).showMember),
		does(post("/members/{member}/commands", "member.tell", "Have one obey: quiet, resume, scale, cancel", operate, nowhere), (*API).tellMember),
		reads(get("/schedules", "schedule.list", "List schedules", view, inEach), (*API).listSchedules),
		reads(get("/ticks", "schedule.ticks", "When a spec ticks next", view, inEach), (*API).nextTicks),
		reads(get("/schedules/{name}", "schedule.show", "Show a schedule", view, inEach), (*API).showSchedule),
		acts(put("/schedules/{name}", "schedule.put", "Make a schedule, or change one", operate, inBody), (*API).putSchedule),
		does(del("/schedules/{name}", "schedule.delete", "Remove a schedule", operate, inEach), (*API).deleteSchedule),
		does(post("/schedules/{name}/pause", "schedule.pause", "Stop a schedule", operate, inEach), (*API).pauseSchedule),
		does(post("/schedules/{name}/resume", "schedule.resume", "Let it tick again", operate, inEach), (*API).resumeSchedule),
		acts(post("/schedules/{name}/trigger", "schedule.trigger", "Publish its message now, beside its ticks", operate, inEach), (*API).triggerSchedule),

		// Alerts and notifications.
		reads(get("/alerts", "alert.list", "What fires, or is about to, and whether anybody looks", view, nowhere), (*API).listAlerts),
		reads(get("/alerts/{rule}/{subject}", "alert.show", "An alert, with what happened to it", view, nowhere), (*API).showAlert),
		does(post("/alerts/{rule}/{subject}/ack", "alert.ack", "Say who takes care of it: no more reminders for a day", operate, nowhere), (*API).acknowledgeAlert),
		reads(get("/alert-history", "alert.history", "What happened in the last 7 days, newest first", view, nowhere), (*API).alertHistory),
		reads(get("/alert-rules", "alert.rules", "The rules that are evaluated", view, nowhere), (*API).listAlertRules),
		acts(put("/alert-rules/{rule}", "alert.put-rule", "Keep a rule in the broker, over a configured one of its name", admin, nowhere), (*API).putAlertRule),
		does(del("/alert-rules/{rule}", "alert.delete-rule", "Remove it there; a configured one counts again", admin, nowhere), (*API).deleteAlertRule),
		acts(post("/alert-rules/{rule}/test", "alert.test", "Send a notice as if the rule fired", operate, nowhere), (*API).testAlertRule),
		reads(get("/silences", "silence.list", "Silences that last", view, nowhere), (*API).listSilences),
		acts(post("/silences", "silence.add", "Keep notices back for a time", operate, nowhere), (*API).addSilence),
		does(del("/silences/{id}", "silence.remove", "End a silence", operate, nowhere), (*API).removeSilence),
		acts(post("/notifications", "notification.send", "Queue a notification", operate, nowhere), (*API).sendNotification),
		reads(get("/notifications/{id}", "notification.show", "What became of each target", view, nowhere), (*API).showNotification),
		acts(post("/notifications/{id}/cancel", "notification.cancel", "Call one back, as far as it is not sent", operate, nowhere), (*API).cancelNotification),
		reads(get("/channels", "channel.list", "Channels of the hubs that run, and how their last sends ended", view, nowhere), (*API).listChannels),
		acts(post("/channels/{channel}/test", "channel.test", "Send a test to one destination", operate, nowhere), (*API).testChannel),

		// Transactions, actions, users and tokens.
		reads(get("/transactions", "transaction.list", "List transactions that are not done", view, nowhere), (*API).listTransactions),
		acts(post("/transactions/{id}/commit", "transaction.commit", "Decide one by hand: commit", operate, nowhere), (*API).commitTransaction),
		acts(post("/transactions/{id}/rollback", "transaction.rollback", "Decide one by hand: roll back", operate, nowhere), (*API).rollBackTransaction),
		reads(get("/actions", "action.list", "Who did what, newest first", admin, nowhere), (*API).listActions),
		reads(get("/actions/verify", "action.verify", "Whether the chain of actions is whole", admin, nowhere), (*API).verifyActions),

		reads(get("/users", "user.list", "List the users", admin, nowhere), (*API).listUsers),
		reads(get("/users/{name}", "user.show", "Show a user", admin, nowhere), (*API).showUser),
		acts(put("/users/{name}", "user.set", "Make a user, or change its roles or password", admin, nowhere), (*API).setUser),
		does(del("/users/{name}", "user.remove", "Remove a user, and end its sessions", admin, nowhere), (*API).removeUser),
		does(post("/users/{name}/disable", "user.disable", "Keep a user out, and end its sessions", admin, nowhere), (*API).disableUser),
		does(post("/users/{name}/enable", "user.enable", "Let a user log in again", admin, nowhere), (*API).enableUser),
		reads(get("/tokens", "token.list", "List the tokens that are good", admin, nowhere), (*API).listTokens),
		acts(post("/tokens", "token.create", "Make a token; its text is told this once", admin, nowhere), (*API).createToken),
		does(del("/tokens/{id}", "token.revoke", "End a token at once", admin, nowhere), (*API).revokeToken),

		// The classic routes.
		acts(post("", "classic.dlq.retry", "Replay one dead letter by its id", operate, inEach).at("/admin/dlq/retry/{messageID}"), (*API).classicRetry),
		acts(post("", "classic.dlq.batch-retry", "Replay dead letters by filter, and count them", operate, inBody).at("/admin/dlq/batch-retry"), (*API).classicBatch),
		reads(get("", "classic.dlq.stats", "Count dead letters", view, inQuery).at("/admin/dlq/stats"), (*API).classicStats),
		reads(get("", "classic.dlq.messages", "List the dead letters of a user", view, inQuery).at("/admin/dlq/messages"), (*API).classicMessages),
		acts(post("", "classic.dlq.purge", "Delete expired dead letters", operate, inQuery).at("/admin/dlq/purge"), (*API).classicPurge),
		writes(get("", "classic.dlq.export", "Export dead letters", auth.Payload, inQuery).at("/admin/dlq/export"), "application/x-ndjson", (*API).exportLetters),
		reads(get("", "classic.ratelimit.status", "Everything about a user", view, nowhere).at("/admin/ratelimit/status/{userID}"), (*API).classicStatus),
		does(post("", "classic.ratelimit.unblock", "Let a user in again", operate, nowhere).at("/admin/ratelimit/unblock/{userID}"), (*API).classicUnblock),
		does(post("", "classic.ratelimit.block", "Keep a user out for good", operate, nowhere).at("/admin/ratelimit/block/{userID}"), (*API).classicBlock),
		does(post("", "classic.ratelimit.adjust", "Give a user another limit for some time", operate, nowhere).at("/admin/ratelimit/adjust/{userID}"), (*API).classicAdjust),
		does(del("", "classic.ratelimit.unadjust", "End that before its time", operate, nowhere).at("/admin/ratelimit/adjust/{userID}"), (*API).classicUnadjust),
		does(post("", "classic.ratelimit.whitelist", "Let a user pass always", operate, nowhere).at("/admin/ratelimit/whitelist/{userID}"), (*API).classicWhitelist),
		does(del("", "classic.ratelimit.unwhitelist", "Make the rules hold for a user again", operate, nowhere).at("/admin/ratelimit/whitelist/{userID}"), (*API).classicUnwhitelist),
		reads(get("", "classic.ratelimit.blocked", "List blocked users", view, nowhere).at("/admin/ratelimit/blocked"), (*API).classicBlocked),
	}
}

// Package alert watches a broker by rules, and tells people through a notify.Hub.
//
//	watch, err := alert.New(broker, alert.Options{Hub: hub, Rules: alert.Builtin(), Collector: collector,
//		Channels: map[string][]notify.Target{"email": {{Channel: "email", To: "ops@example.com"}}}})
//	err = watch.Run(ctx) // in any number of processes: one evaluates
//
// A rule is a condition over figures. One that names figures of a queue holds for each topic and group by itself. What
// is known of a rule and its subject is a named value of the broker, written under the lease of the one process that
// leads: another goes on where that one ended. A notice is owed first and sent then, under an id that both would
// choose, so that a change of the leader neither loses nor repeats one.
package alert

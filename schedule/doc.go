// Package schedule publishes messages at times: every night at three, every ten seconds, once at noon. It is cron
// without a leader.
//
//	s, err := schedule.New(broker, schedule.Options{})
//	report, err := ferry.NewMessage(ctx, broker, "reports", Report{Kind: "daily"})
//	err = s.Put(ctx, schedule.Schedule{Name: "daily-report", Spec: "0 3 * * *", Zone: "Europe/Berlin", Message: report})
//	err = s.Run(ctx) // in any number of programs
//
// A schedule is a named value of the broker, and its next tick a delayed message in the internal topic ferry.schedules.
// Whoever takes that message settles it together with the user's message and the tick after it. So there is nobody who
// must be alive at a certain time, the broker's clock alone decides, and a tick fires once whoever runs or is killed;
// on Kafka that takes transactions=true: without it a kill can repeat one under the same id. docs/schedules.md says
// what is exact and where not.
package schedule

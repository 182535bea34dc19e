// Package notify sends notifications through a broker: e-mail, chat robots, SMS and webhooks, on one queue.
//
//	channels := map[string]notify.Channel{"email": mail, "feishu": robots}
//	hub, err := notify.New(broker, notify.Options{Channels: channels})
//	go hub.Run(ctx)
//	m := notify.NewMessage("Disk full", "host db1 has 2 % left").WithPriority(notify.Urgent).
//		AddEmail("ops@example.com").AddTarget(notify.Target{Channel: "feishu", To: "ops"})
//	sent, err := hub.Send(ctx, m)
//	receipt, err := sent.Wait(ctx)
//
// Each target is a message of its own, keyed by its destination: what one destination refuses is tried again there and
// nowhere else, and one process at a time sends to a destination, which is how the limits of vendors hold over
// processes. What became of a target is a named value of the broker. A target whose success is recorded is never sent
// to again; a process that is killed between a vendor's answer and the record may repeat that one.
package notify

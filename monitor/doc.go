// Package monitor says how a broker and its workers fare: numbers for a dashboard, a verdict for a health check, and
// the messages that are stuck.
//
//	m, err := monitor.New(broker, monitor.Options{Workers: []*worker.Worker{w}})
//	s := m.Look(ctx)
//	fmt.Println(s.Health.Status, s.Health.Reasons)
//
// A look costs the broker a few counts for each topic, and never a scan.
package monitor

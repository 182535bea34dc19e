// Package prom makes Ferry's figures Prometheus metrics.
//
//	metrics, err := prom.New(prom.Options{})
//	broker, err := memory.Open(ctx, memory.Options{Broker: ferry.Options{Hooks: metrics.Hooks()}})
//	...
//	metrics.Watch(prom.Sources{Workers: []*worker.Worker{w}, Collector: collector})
//	http.Handle("/metrics", metrics.Handler())
//
// What publishers do is counted by a hook. What workers do they count anyway, and a scrape reads it: it costs no
// message anything. What the broker holds is asked for by a monitor.Collector, in counts, whatever lies in the topics.
//
// The number of series is bounded: of topics, groups, limits and reasons beyond Options the figures are added up under
// the name "(other)", and the log says so once. No label ever holds an id, a key or the text of an error.
package prom

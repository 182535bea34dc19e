package config

// elsewhere says where things have their place that people look for in the configuration of a queue. This file is that
// of the server: what concerns messages is said where they are published and handled, so that it holds with any server
// and with none.
var elsewhere = map[string]string{
	"kafka": "name the brokers in broker: kafka://h1:9092,h2:9092?partitions=12&replicas=3 (docs/urls.md); a " +
		"topic of its own: 'ferry topic create NAME --partitions 12'",
	"redis": "name the server in broker: redis://host:6379/0 (docs/urls.md); one with a password goes into " +
		"FERRY_BROKER",
	"topics": "make topics with 'ferry topic create NAME --partitions N', or PUT /api/v1/topics/NAME",
	"distributed_lock": "locks lie in the broker and need no configuration: cluster.Acquire (docs/cluster.md); with " +
		"Sentinel, broker: redis+sentinel://h1,h2/primary",
	"rate_limiter": "limits and their groups are those of the workers: guard.NewLimiter (docs/protection.md); store " +
		"names where they count, and 'ferry limit rule set' changes them while they run",
	"streaming": workers,
	"mq":        workers,
	"dlq": "every topic has dead letters, and their number of attempts is the worker's: worker.MaxAttempts " +
		"(docs/deadletters.md)",

	"max_workers":             "set it in the worker: worker.Concurrency(5)",
	"task_queue_size":         "there is no queue to size: a worker fetches what its free slots can start",
	"connection_pool_size":    "set it in the URL: broker: redis://host?pool=20",
	"batch_size":              "set it in the worker: worker.BatchSize(100)",
	"processing_timeout":      "set it in the worker: worker.Timeout(3 * time.Minute)",
	"monitor_interval":        "figures are taken each second while somebody looks, and every ten seconds otherwise",
	"expired_check_interval":  "there is nothing to check: a lease that ends is noticed at once",
	"delay_fallback_interval": "there is nothing to fall back to: delayed messages are due by the clock of the broker",
	"message_ttl":             "set it where messages are published: ferry.TTL(24 * time.Hour)",
	"max_retries":             "set it in the worker: worker.MaxAttempts(4), which counts the first one",
	"retry_delays": "set it in the worker: worker.Retry(ferry.RetryPolicy{Delays: " +
		"[]time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute}})",
	"preset": "there are no presets of servers; for many messages, worker.Concurrency(20), " +
		"worker.BatchSize(200) and pool=50 in the URL",
	"high_performance": "there are no presets of servers; for many messages, worker.Concurrency(20), " +
		"worker.BatchSize(200) and pool=50 in the URL",
}

const workers = "consumers and producers are programs: worker.BatchSize, worker.MaxAttempts and worker.Retry say how " +
	"they work; " +
	"'ferry topic retain' bounds what a topic keeps, and never drops what is unsettled"

package prom

import "github.com/prometheus/client_golang/prometheus"

// fold says how values are put together that lose what told them apart.
type fold uint8

const (
	sum fold = iota
	most
)

// family is one metric.
type family struct {
	name   string
	kind   prometheus.ValueType
	labels []string
	help   string
	fold   fold

	desc *prometheus.Desc
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

var (
	byTopic     = []string{"topic"}
	byGroup     = []string{"topic", "group"}
	byPartition = []string{"topic", "group", "partition"}
)

// families are all metrics, by who tells of them.
type families struct {
	// of this process: publishers
	published, publishErrors, publishDuration *family
	// of this process: workers
	processed, failed, deadLetters, duration, wait, redeliveries, leasesLost, refused, emergencies *family
	running, keys, handlers                                                                        *family
	partitionProcessed                                                                             *family
	// of the broker
	messages, events, oldest, consumers, full, lag, rebalances *family
	memory, memoryLimit, connections, disk, diskFree           *family
	up, health, uptime, failures, mtbf, mttr, lastFailure      *family
	processes, processCPU, processMemory, hostCPU, hostMemory  *family
	hostMemoryLimit                                            *family
	recovered, unrecoverable, recoveryWaiting, reviewPending   *family
	violations, penalties, blocked, guardRefused               *family
	transitions, breaker                                       *family
	lockAcquired, lockFailed, lockExpired, lockHold            *family
	spooled, spoolWaits, spoolKeys, spoolLast, spoolFailed     *family
	wecomCallbacks, wecomLast, wecomToken, wecomRewound        *family
	wecomPulls, wecomFailing, wecomAge, wecomMessages          *family
	build, folded                                              *family
}

// newFamilies makes the metrics of a broker.
func newFamilies(broker string) (*families, []*family) {
	var all []*family
	add := func(name string, kind prometheus.ValueType, labels []string, help string) *family {
		f := &family{name: name, kind: kind, labels: labels, help: help}
		f.desc = prometheus.NewDesc(name, help, labels, prometheus.Labels{"broker": broker})
		all = append(all, f)
		return f
	}
	fs := &families{
		published: add("ferry_messages_published_total", counter, byTopic,
			"Messages that this process published and the broker accepted."),
		publishErrors: add("ferry_publish_errors_total", counter, []string{"topic", "kind"},
			"Messages of this process that the broker did not accept, by kind of error."),
		publishDuration: add("ferry_publish_duration_seconds", gauge, byTopic, "How long publishes of this process took."),

		processed: add("ferry_messages_processed_total", counter, []string{"topic", "group", "result"},
			"Messages that workers of this process decided on: ack, retry, dead, drop, or release, which counts no attempt."),
		failed: add("ferry_messages_failed_total", counter, []string{"topic", "group", "reason"},
			"Attempts of this process that failed, by reason."),
		deadLetters: add("ferry_dead_letters_total", counter, []string{"topic", "group", "reason"},
			"Messages that this process made dead letters, by reason."),
		duration: add("ferry_process_duration_seconds", gauge, byGroup, "How long handlers of this process took."),
		wait: add("ferry_queue_wait_seconds", gauge, byGroup,
			"How long messages of a first attempt waited for their handler after they were due."),
		redeliveries: add("ferry_redeliveries_total", counter, []string{"topic", "group", "cause"},
			"Deliveries to this process that were not the first of their message, by cause."),
		leasesLost: add("ferry_leases_lost_total", counter, byGroup, "Messages that were lost while their handler ran."),
		refused: add("ferry_settlements_refused_total", counter, byGroup,
			"Outcomes that the broker did not accept, because the message was another's by then."),
		emergencies: add("ferry_emergency_writes_total", counter, byGroup,
			"Dead letters that went to the emergency file, because the broker did not take them."),
		running: add("ferry_handlers_inflight", gauge, byGroup, "Handlers of this process that run."),
		keys:    add("ferry_active_keys", gauge, byGroup, "Keys of which this process holds messages."),
		handlers: add("ferry_handlers", gauge, []string{"state"},
			"Handlers that this process may run at once, by whether they do: active or idle."),

		partitionProcessed: add("ferry_partition_processed_total", counter, byPartition,
			"Messages of a partition that workers of this process settled."),

		messages: add("ferry_topic_messages", gauge, []string{"topic", "group", "state"},
			"Messages in the broker by state; delayed, held and invalid ones belong to no group."),
		events: add("ferry_group_messages_total", counter, []string{"topic", "group", "event"},
			"What became of messages in all processes, as the broker counts it."),
		oldest: add("ferry_oldest_message_age_seconds", gauge, byGroup,
			"How long the oldest ready message has been ready."),
		consumers: add("ferry_consumers", gauge, byGroup, "Consumers of a group in all processes."),
		full:      add("ferry_topic_full_ratio", gauge, byTopic, "How much of the bound of a topic is used, from 0 to 1."),
		lag: add("ferry_consumer_lag_messages", gauge, byPartition,
			"Messages of a partition that a group has not read."),
		rebalances: add("ferry_rebalances_total", counter, byGroup, "Changes of the owner of a partition that were seen."),
		memory:     add("ferry_backend_memory_bytes", gauge, nil, "Memory that the backend uses."),
		memoryLimit: add("ferry_backend_memory_limit_bytes", gauge, nil,
			"Memory that the backend may use; zero without a limit."),
		connections: add("ferry_backend_connections", gauge, nil, "Clients of the backend."),
		disk:        add("ferry_backend_disk_bytes", gauge, nil, "Size of the backend's files."),
		diskFree:    add("ferry_backend_disk_free_bytes", gauge, nil, "Disk space that is left to the backend."),

		up: add("ferry_up", gauge, nil, "Whether the broker told its figures: 1 or 0."),
		health: add("ferry_health", gauge, []string{"status"},
			"The verdict on the system: 1 for healthy, degraded or unhealthy, 0 for the others."),
		uptime: add("ferry_uptime_seconds", gauge, nil, "How long the collector has been looking."),
		failures: add("ferry_failures_total", counter, nil,
			"How often the system became unhealthy since the collector was made."),
		mtbf: add("ferry_mtbf_seconds", gauge, nil, "Mean time between failures; zero without one."),
		mttr: add("ferry_mttr_seconds", gauge, nil, "Mean time to repair; zero without a repair."),
		lastFailure: add("ferry_last_failure_timestamp_seconds", gauge, nil,
			"When the last failure began; zero without one."),

		processes: add("ferry_processes", gauge, nil, "Processes that tell of themselves."),
		processCPU: add("ferry_process_cpu_ratio", gauge, nil,
			"Share of its processors that this process used since the collection before."),
		processMemory: add("ferry_process_memory_bytes", gauge, nil, "Memory of this process."),
		hostCPU: add("ferry_host_cpu_ratio", gauge, nil,
			"Share of the processors of this machine that was busy since the collection before."),
		hostMemory:      add("ferry_host_memory_bytes", gauge, nil, "Memory of this machine that is in use."),
		hostMemoryLimit: add("ferry_host_memory_limit_bytes", gauge, nil, "Memory of this machine."),

		recovered:       add("ferry_dead_letters_recovered_total", counter, nil, "Dead letters that recovery brought back."),
		unrecoverable:   add("ferry_dead_letters_unrecoverable", gauge, nil, "Dead letters that recovery gave up."),
		recoveryWaiting: add("ferry_recovery_waiting", gauge, nil, "Dead letters that recovery will bring back later."),
		reviewPending:   add("ferry_recovery_review_pending", gauge, nil, "Dead letters that are left to people."),

		violations: add("ferry_limit_violations_total", counter, []string{"limit"}, "Messages over a rate limit."),
		penalties: add("ferry_limit_penalties_total", counter, []string{"limit"},
			"Keys that were blocked for their violations."),
		blocked: add("ferry_limit_blocked_keys", gauge, []string{"limit"},
			"Keys that are blocked now; of more than 1000 the first 1000."),
		guardRefused: add("ferry_guard_refused_total", counter, []string{"layer", "name", "kind"},
			"Messages that a guard did not let pass: limited, blocked, busy or open."),
		transitions: add("ferry_breaker_transitions_total", counter, []string{"name", "to"},
			"Changes of a breaker's state."),
		breaker: add("ferry_breaker_state", gauge, []string{"name"},
			"State of a breaker: 0 closed, 1 half open, 2 open."),

		lockAcquired: add("ferry_lock_acquired_total", counter, []string{"lock"}, "Locks that were taken."),
		lockFailed:   add("ferry_lock_failed_total", counter, []string{"lock"}, "Tries for a lock that ended without one."),
		lockExpired: add("ferry_lock_expired_total", counter, []string{"lock"},
			"Locks that were lost while they were held."),
		lockHold: add("ferry_lock_hold_seconds", gauge, []string{"lock"}, "How long released locks were held."),

		spooled: add("ferry_spool_messages_total", counter, nil,
			"Messages that were spooled, since the broker did not answer."),
		spoolWaits: add("ferry_spool_messages", gauge, nil, "Messages that wait in the spool of this process."),
		spoolKeys:  add("ferry_spool_keys", gauge, nil, "Keys of messages that wait in the spool of this process."),
		spoolLast: add("ferry_spool_last_timestamp_seconds", gauge, nil,
			"When a message last had to be spooled; zero if none had."),
		spoolFailed: add("ferry_spool_failures_total", counter, nil,
			"Publishes that the broker behind a spool did not take."),

		wecomCallbacks: add("ferry_wecom_callbacks_total", counter, []string{"result"},
			"Callbacks of WeCom: stored, refused or failed."),
		wecomLast: add("ferry_wecom_last_callback_timestamp_seconds", gauge, nil,
			"When a callback was last stored; zero if none was."),
		wecomToken: add("ferry_wecom_token_expiry_timestamp_seconds", gauge, nil,
			"When the access token is asked for anew; zero if there is none."),
		wecomPulls: add("ferry_wecom_pulls_total", counter, []string{"result"},
			"Pulls of accounts: done, failed or limited."),
		wecomRewound: add("ferry_wecom_cursor_resets_total", counter, nil, "Cursors that WeCom refused."),
		wecomFailing: add("ferry_wecom_failing_accounts", gauge, nil, "Accounts whose last pull by this process failed."),
		wecomAge: add("ferry_wecom_cursor_age_seconds", gauge, nil,
			"How long ago the account was pulled that was not pulled for longest."),
		wecomMessages: add("ferry_wecom_messages_total", counter, []string{"result"},
			"Messages that were pulled: published, duplicates, or cut because they are too large for the broker."),

		build: add("ferry_build_info", gauge, []string{"version"}, "The version of Ferry; the value is 1."),
		folded: add("ferry_folded_names", gauge, []string{"label"},
			"Names that are not told apart, since there are more than Options allow."),
	}
	for _, f := range []*family{fs.oldest, fs.full, fs.breaker, fs.spoolLast, fs.wecomLast, fs.wecomToken, fs.wecomAge} {
		f.fold = most
	}
	return fs, all
}

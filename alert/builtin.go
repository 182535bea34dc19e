package alert

import "time"

// The names of channels that the built-in rules use. Each rule goes to those of them that Options.Channels has.
var (
	chat     = []string{"slack", "feishu", "dingtalk", "wecom"}
	chatMail = append([]string{"email"}, chat...)
	everyone = append([]string{"sms"}, chatMail...)
)

const depthQL = `sum by (topic, group) (ferry_topic_messages{state=~"ready|inflight|waiting"})`

// pair is a rule with two thresholds: name, then name and " (critical)".
func pair(name, when, text, promql string, warning, critical float64, f time.Duration, action string) []Rule {
	w := Rule{Name: name, When: when, Threshold: warning, Severity: Warning, For: f, Channels: chatMail, Text: text,
		Action: action, PromQL: promql}
	c := w
	c.Name, c.Threshold, c.Severity, c.Channels = name+" (critical)", critical, Critical, everyone
	return []Rule{w, c}
}

// Builtin are the rules that most systems want. Change them as you like: they are values.
func Builtin() []Rule {
	rules := named()
	rules = append(rules, thresholds()...)
	rules = append(rules, ofDeadLetters()...)
	rules = append(rules, ofLimits()...)
	return append(rules, ofEvents()...)
}

func named() []Rule {
	return []Rule{
		{Name: "队列积压告警", When: "queue_depth > threshold", Threshold: 1000, Severity: Warning, For: time.Minute,
			Cooldown: 5 * time.Minute, Channels: chatMail, Text: "队列 {topic} 积压 {queue_depth} 条消息，超过阈值 {threshold}",
			PromQL: depthQL},
		{Name: "处理超时率告警", When: "timeout_rate > threshold", Threshold: 0.05, Severity: Critical, For: 2 * time.Minute,
			Cooldown: 10 * time.Minute, Channels: everyone, Text: "消息处理超时率 {timeout_rate:.1%}，超过阈值 {threshold:.1%}",
			PromQL: `sum by (topic, group) (rate(ferry_messages_failed_total{reason="timeout"}[1m])) ` +
				`/ sum by (topic, group) (rate(ferry_messages_processed_total[1m]))`},
		{Name: "Redis内存告警", When: "redis_memory_usage > threshold", Threshold: 0.8, Severity: Warning, For: 5 * time.Minute,
			Cooldown: 30 * time.Minute, Channels: chatMail, Text: "Redis内存使用率 {redis_memory_usage:.1%}，超过阈值 {threshold:.1%}",
			PromQL: `ferry_backend_memory_bytes / (ferry_backend_memory_limit_bytes > 0)`},
		{Name: "死信队列告警", When: "dlq_count > threshold", Threshold: 100, Severity: Critical, Cooldown: time.Hour,
			Channels: everyone, Text: "死信队列累积 {dlq_count} 条消息，需要人工干预",
			PromQL: `sum by (topic, group) (ferry_topic_messages{state="dead"})`},
		{Name: "KafkaProducerDegraded", When: "degraded_messages > threshold", Threshold: 10, Severity: Page,
			For:    time.Minute,
			Text:   "publishing is degraded: {degraded_messages} messages wait in spools, in order of their keys",
			PromQL: `sum(ferry_spool_messages)`},
		{Name: "KafkaProducerDown", When: "kafka_failures > threshold", Threshold: 100, Severity: Critical,
			For:    5 * time.Minute,
			Text:   "the broker takes nothing: {kafka_failures} publishes failed, all messages are spooled",
			PromQL: `sum(increase(ferry_spool_failures_total[5m]))`},
		{Name: "ConsumerLag", When: "consumer_lag > threshold", Threshold: 10000, Severity: Warning, For: 5 * time.Minute,
			PromQL: `sum by (topic, group) (ferry_consumer_lag_messages)`},
		{Name: "RebalanceFrequent", When: "rebalance_count > threshold", Threshold: 3, Severity: Page, For: 10 * time.Minute,
			PromQL: `sum by (topic, group) (increase(ferry_rebalances_total[10m]))`},
		{Name: "ProcessorMemoryLeak", When: "active_processors > threshold", Threshold: 1000, Severity: Warning,
			For:    30 * time.Minute,
			PromQL: `sum(ferry_active_keys)`},
	}
}

func thresholds() []Rule {
	var rules []Rule
	add := func(more []Rule) { rules = append(rules, more...) }
	add(pair("queue depth", "queue_depth > threshold", "{subject}: {queue_depth} messages wait", depthQL, 1000, 5000,
		time.Minute, "Scale out."))
	add(pair("P99 latency", "p99_processing_time > threshold", "{subject}: P99 is {p99_processing_time:.1f} s",
		`histogram_quantile(0.99, sum by (topic, group, le) (rate(ferry_process_duration_seconds_bucket[1m])))`, 5, 10,
		time.Minute, "Handlers are slow."))
	add(pair("mean latency", "avg_processing_time > threshold",
		"{subject}: handlers take {avg_processing_time:.1f} s on average",
		`sum by (topic, group) (rate(ferry_process_duration_seconds_sum[1m])) `+
			`/ sum by (topic, group) (rate(ferry_process_duration_seconds_count[1m]))`, 5, 30, time.Minute,
		"Handlers are slow."))
	errors := `sum by (topic, group) (rate(ferry_messages_failed_total[1m])) ` +
		`/ sum by (topic, group) (rate(ferry_messages_processed_total[1m]))`
	add(pair("error rate", "error_rate > threshold", "{subject}: {error_rate:.1%} failed", errors, 0.01, 0.05, time.Minute,
		"Look at the errors of the handlers."))
	add(pair("high error rate", "error_rate > threshold", "{subject}: {error_rate:.1%} failed", errors, 0.05, 0.20,
		time.Minute, "Look at the errors of the handlers."))
	add(pair("backend memory", "redis_memory_usage > threshold",
		"{redis_memory_usage:.1%} of the backend's memory is used",
		`ferry_backend_memory_bytes / (ferry_backend_memory_limit_bytes > 0)`, 0.8, 0.9, 5*time.Minute, "Give it memory."))
	add(pair("CPU", "cpu_usage > threshold", "{cpu_usage:.1%} of the processors is used", `ferry_process_cpu_ratio`, 0.7,
		0.85, 5*time.Minute, "Spread the load."))
	add(pair("dead letters", "dlq_count > threshold", "{subject}: {dlq_count} dead letters",
		`sum by (topic, group) (ferry_topic_messages{state="dead"})`, 10, 100, 0, "Somebody must look at them."))
	add(pair("bounded topic", "full > threshold", "{subject}: {full:.0%} of its bound is used", `ferry_topic_full_ratio`,
		0.7, 0.9, time.Minute, "Scale out, or raise the bound."))
	return rules
}

func ofDeadLetters() []Rule {
	return []Rule{
		{Name: "dlq_messages_produced_total", When: "dlq_hour > threshold", Threshold: 100, Cooldown: time.Hour,
			PromQL: `sum by (topic, group) (increase(ferry_dead_letters_total[1h]))`},
		{Name: "dlq_emergency_writes_total", When: "emergency_writes >= threshold", Threshold: 1, Severity: Critical,
			Channels: everyone,
			Action:   "Check the cluster at once: dead letters went to the emergency file.",
			PromQL:   `sum(ferry_emergency_writes_total)`},
		{Name: "dlq_messages_unrecoverable_total", When: "dlq_unrecoverable_day > threshold", Threshold: 10,
			Cooldown: time.Hour},
		{Name: "dlq_messages_unrecoverable_total (P1)", When: "dlq_unrecoverable > threshold", Threshold: 100, Severity: Page,
			Channels: everyone, Cooldown: time.Hour, Action: "Somebody must look at them.",
			PromQL: `sum(ferry_dead_letters_unrecoverable)`},
		{Name: "dlq_consumer_lag", When: "dlq_consumer_lag > threshold", Threshold: 1000,
			PromQL: `sum(ferry_recovery_waiting)`},
		{Name: "dlq_manual_review_pending", When: "dlq_manual_review_pending > threshold", Threshold: 100,
			PromQL: `sum(ferry_recovery_review_pending)`},
		{Name: "DLQ growth", When: "dlq_hour > 10 and dlq_hour > threshold * dlq_normal", Threshold: 3, Cooldown: time.Hour,
			Text: "{subject}: {dlq_hour} dead letters in an hour, {dlq_normal:.1f} are normal", Action: "Look for a fault."},
		{Name: "DLQ recovery stopped", When: "dlq_recovery_leaders < threshold", Threshold: 1, Severity: Critical,
			For:      time.Minute,
			Channels: everyone, Text: "nobody recovers dead letters", Action: "Restart the recovery."},
		{Name: "dead letters, daily", When: "dlq_total > threshold", Threshold: 0, Severity: Info, Cooldown: 24 * time.Hour,
			Channels: []string{"email"}, Text: "每日检查死信队列大小: {dlq_total}", PromQL: `sum(ferry_topic_messages{state="dead"})`},
	}
}

func ofLimits() []Rule {
	return []Rule{
		{Name: "rate_limit_violations_total", When: "rate_limit_violations_hour > threshold", Threshold: 100,
			Cooldown: time.Hour,
			PromQL:   `sum(increase(ferry_limit_violations_total[1h]))`},
		{Name: "users_blocked_total", When: "users_blocked_hour > threshold", Threshold: 10, Cooldown: time.Hour,
			PromQL: `sum(increase(ferry_limit_penalties_total[1h]))`},
		{Name: "blocked_users_current", When: "blocked_users_current > threshold", Threshold: 50,
			PromQL: `sum(ferry_limit_blocked_keys)`},
		{Name: "messages_denied_total", When: "messages_denied_hour > threshold", Threshold: 1000, Cooldown: time.Hour,
			PromQL: `sum(increase(ferry_guard_refused_total[1h]))`},
		{Name: "breaker open", When: "breaker_open >= threshold", Threshold: 1, Severity: Critical, Channels: everyone,
			Text:   "the breaker {breaker} is open in {breaker_open:d} processes",
			PromQL: `count by (name) (ferry_breaker_state == 2)`},
	}
}

func ofEvents() []Rule {
	return []Rule{
		{Name: UserBlocked, Severity: Critical,
			Text: "user {user_id} was blocked for {block_hours:.1f} h after {violations:d} violations; " +
				"last messages: {messages}"},
		{Name: BreakerOpen, Severity: Critical, Text: "the breaker {name} is open"},
		{Name: ManyUsersBlocked, Severity: Emergency, Text: "{users:d} users were blocked within a minute",
			Action: "Somebody must look at once: it may be an attack."},
	}
}

package api

// Broker is what the broker can do and what it uses.
type Broker struct {
	Driver       string       `json:"driver"`
	Environment  string       `json:"environment,omitempty" doc:"As the server was told: production for example"`
	Version      string       `json:"version,omitempty" doc:"Of the server"`
	Capabilities Capabilities `json:"capabilities"`
	Log          bool         `json:"log" doc:"It keeps messages in partitions: partitions, pending, range, replay, retention and trim answer"`
	Tail         bool         `json:"tail" doc:"Topics can be watched live: their tail answers"`
	Guards       bool         `json:"guards" doc:"The server has a store of guards: limits and breakers answer"`
	Actions      bool         `json:"actions" doc:"The server records who did what"`
	Alerts       bool         `json:"alerts" doc:"The server evaluates rules of alerts: its rules answer"`
	WeCom        bool         `json:"wecom" doc:"The server pulls customer service of WeCom: its accounts answer"`
	Usage        Usage        `json:"usage"`
}

// Capabilities say what a broker can do; what it cannot do answers with 501.
type Capabilities struct {
	LeaseScope     string   `json:"lease_scope"`
	MinLease       Duration `json:"min_lease"`
	DefaultLease   Duration `json:"default_lease"`
	KeyedPriority  string   `json:"keyed_priority"`
	Parallel       string   `json:"parallel"`
	Dedup          string   `json:"dedup"`
	IDWindow       Duration `json:"id_window"`
	Bound          string   `json:"bound"`
	AtomicPublish  string   `json:"atomic_publish"`
	AtomicEmit     string   `json:"atomic_emit"`
	Counts         string   `json:"counts"`
	GetByID        string   `json:"get_by_id"`
	PhysicalDelete bool     `json:"physical_delete"`
	History        string   `json:"history"`
	Endings        bool     `json:"endings"`
	Durability     string   `json:"durability"`
	Levels         []string `json:"levels"`
	MaxBody        int      `json:"max_body"`
	SettleLag      Duration `json:"settle_lag"`
}

// Usage is what the backend uses; zero is not known.
type Usage struct {
	Memory      int64 `json:"memory"`
	MemoryLimit int64 `json:"memory_limit"`
	Disk        int64 `json:"disk"`
	DiskFree    int64 `json:"disk_free"`
	Connections int   `json:"connections"`
}

// Health is a verdict with its reasons.
type Health struct {
	Status        string         `json:"status" enum:"healthy,degraded,unhealthy"`
	QueueSize     int64          `json:"queue_size" doc:"What waits to be handled, in all groups"`
	Workers       int            `json:"workers" doc:"Members that told of themselves"`
	LastProcessed *Time          `json:"last_processed,omitempty" doc:"When something was last seen to be handled, since the server started"`
	Errors        []string       `json:"errors" doc:"The reasons, as sentences"`
	Reasons       []HealthReason `json:"reasons"`
	Uptime        Duration       `json:"uptime" doc:"Of the server"`
	At            *Time          `json:"at"`
}

// HealthReason is one thing that is not as it should be: a sentence in English, and the code and values for other
// languages.
type HealthReason struct {
	Status    string   `json:"status"`
	Code      string   `json:"code" enum:"broker_unreachable,memory_used,topic_missing,bound_used,messages_invalid,dead_letters,no_consumer,oldest_waits,backlog_grows,worker_reconnecting,messages_fail,handlers_abandoned,overdue,unexpired,stalled,long_running,wecom_not_pulled"`
	Subject   string   `json:"subject" doc:"The broker, a topic, a group of a topic, or a worker, in words"`
	Text      string   `json:"text" doc:"The reason in English"`
	Topic     string   `json:"topic,omitempty"`
	Group     string   `json:"group,omitempty"`
	Instance  string   `json:"instance,omitempty" doc:"A worker"`
	Account   string   `json:"account,omitempty" doc:"An account of customer service of WeCom"`
	Count     int64    `json:"count,omitempty"`
	Share     float64  `json:"share,omitempty" doc:"From 0 to 1"`
	Age       Duration `json:"age,omitempty"`
	Looks     int      `json:"looks,omitempty" doc:"How many in a row saw a backlog that had grown"`
	PerSecond float64  `json:"per_second,omitempty"`
	Groups    []string `json:"groups,omitempty" doc:"What consumers of the topic use instead of a group that the first publish made"`
	Error     string   `json:"error,omitempty"`
}

// Findings are what a look at the backend itself found.
type Findings struct {
	Findings []Finding `json:"findings"`
}

// Finding is one thing that was looked at.
type Finding struct {
	Severity string `json:"severity" enum:"ok,warning,error,unknown"`
	Subject  string `json:"subject"`
	Text     string `json:"text"`
	Hint     string `json:"hint,omitempty"`
}

// Scale is what an autoscaler asks: how many instances a group needs.
type Scale struct {
	Value   int      `json:"value" doc:"Instances the group needs"`
	Current int      `json:"current"`
	Verdict string   `json:"verdict" enum:"scale_out,scale_in,none"`
	Depth   int64    `json:"depth" doc:"What waits to be handled"`
	Oldest  Duration `json:"oldest"`
	Reasons []string `json:"reasons"`
}

// Figures are the numbers of some queues at one moment.
type Figures struct {
	At     *Time   `json:"at"`
	Status string  `json:"status" enum:"healthy,degraded,unhealthy"`
	Queues []Queue `json:"queues"`
}

// Queue is one group of a topic; with an empty group, what belongs to the topic as a whole.
type Queue struct {
	Topic        string   `json:"topic"`
	Group        string   `json:"group,omitempty"`
	Paused       bool     `json:"paused"`
	Consumers    int      `json:"consumers"`
	Ready        int64    `json:"ready"`
	Inflight     int64    `json:"inflight"`
	Waiting      int64    `json:"waiting"`
	Dead         int64    `json:"dead"`
	Delayed      int64    `json:"delayed"`
	Held         int64    `json:"held"`
	Invalid      int64    `json:"invalid"`
	Oldest       Duration `json:"oldest"`
	InPerSecond  float64  `json:"in_per_second"`
	OutPerSecond float64  `json:"out_per_second"`
	Full         float64  `json:"full,omitempty" doc:"How much of the bound of the topic is used, from 0 to 1"`
}

// Series are the figures of one queue over time, for charts.
type Series struct {
	Topic string  `json:"topic,omitempty" doc:"None: all topics together"`
	Group string  `json:"group,omitempty"`
	Span  string  `json:"span" enum:"5m,24h"`
	Every string  `json:"every" doc:"Time between two points, at best"`
	Lines []Point `json:"points" doc:"Oldest first"`
}

// Point is a queue at one moment.
type Point struct {
	At           *Time   `json:"at"`
	Ready        int64   `json:"ready"`
	Dead         int64   `json:"dead"`
	OldestSecond float64 `json:"oldest_seconds"`
	InPerSecond  float64 `json:"in_per_second"`
	OutPerSecond float64 `json:"out_per_second"`
}

package api

// Topic is a topic with its counts.
type Topic struct {
	Topic     string   `json:"topic"`
	Paused    bool     `json:"paused"`
	Why       string   `json:"why" doc:"In a sentence: what the topic does, or why nothing happens"`
	Config    Config   `json:"config"`
	Published uint64   `json:"published"`
	Fanned    uint64   `json:"fanned"`
	Expired   uint64   `json:"expired"`
	Cancelled uint64   `json:"cancelled"`
	Delayed   int64    `json:"delayed"`
	Held      int64    `json:"held"`
	Invalid   int64    `json:"invalid"`
	Messages  int64    `json:"messages"`
	Bytes     int64    `json:"bytes"`
	Ready     int64    `json:"ready" doc:"Sum over the groups, as inflight, waiting and dead"`
	Inflight  int64    `json:"inflight"`
	Waiting   int64    `json:"waiting"`
	Dead      int64    `json:"dead"`
	Oldest    Duration `json:"oldest" doc:"How long the oldest ready message has been ready"`
	Groups    []Group  `json:"groups"`
}

// Config is the configuration of a topic. Zero values: no bound, nothing kept.
type Config struct {
	MaxMessages int64    `json:"max_messages,omitempty" minimum:"0"`
	MaxBytes    int64    `json:"max_bytes,omitempty" minimum:"0"`
	Keep        Duration `json:"keep,omitempty" doc:"How long settled messages are held"`
	KeepMost    int64    `json:"keep_most,omitempty" minimum:"0"`
	ExpiredDead bool     `json:"expired_dead,omitempty" doc:"Expired messages become dead letters"`
	Partitions  int      `json:"partitions,omitempty" minimum:"0"`
}

// Group is a group of a topic with its counts.
type Group struct {
	Group       string   `json:"group"`
	Order       string   `json:"order"`
	Paused      bool     `json:"paused"`
	Why         string   `json:"why" doc:"In a sentence: what the group does, or why nothing happens"`
	Consumers   int      `json:"consumers"`
	Received    uint64   `json:"received"`
	Acked       uint64   `json:"acked"`
	Dropped     uint64   `json:"dropped"`
	Expired     uint64   `json:"expired"`
	Cancelled   uint64   `json:"cancelled"`
	Ready       int64    `json:"ready"`
	Inflight    int64    `json:"inflight"`
	Waiting     int64    `json:"waiting"`
	Dead        int64    `json:"dead"`
	Redelivered uint64   `json:"redelivered"`
	Retried     uint64   `json:"retried"`
	Died        uint64   `json:"died"`
	Oldest      Duration `json:"oldest"`
}

// TopicPage is a page of topics, in order of their names.
type TopicPage struct {
	Topics []Topic `json:"topics"`
	Next   string  `json:"next,omitempty" doc:"Cursor of the next page; absent at the end"`
}

// NewGroup says how a group begins.
type NewGroup struct {
	Order string `json:"order,omitempty" enum:"strict,relaxed" doc:"What followers of a failing message with the same key do"`
	From  string `json:"from,omitempty" enum:"end,begin" doc:"Where it starts in what the topic keeps; the end by default"`
	Since *Time  `json:"since,omitempty" doc:"Start at the first message that became ready then or later"`
}

// Balance tells whether what entered a topic equals what left it and what is there.
type Balance struct {
	Topic    string   `json:"topic"`
	Balanced bool     `json:"balanced"`
	Problems []string `json:"problems" doc:"Equations that do not hold; an operation of kind topic.audit looks at every message"`
}

// Retention bounds the log of a topic, where the broker has one.
type Retention struct {
	Age           Duration `json:"age,omitempty"`
	Entries       int64    `json:"entries,omitempty" minimum:"0"`
	Bytes         int64    `json:"bytes,omitempty" minimum:"0"`
	DropUnsettled bool     `json:"drop_unsettled,omitempty"`
}

// Trimmed tells what a trim removed.
type Trimmed struct {
	Removed int  `json:"removed"`
	Dropped int  `json:"dropped" doc:"Of those removed, not settled by some group"`
	Waits   bool `json:"waits" doc:"For what is not settled, or in flight"`
}

// Partitions are those of a topic, where the broker has some.
type Partitions struct {
	Partitions []Partition `json:"partitions"`
}

// Partition is one partition of a topic.
type Partition struct {
	Partition int32            `json:"partition"`
	Entries   int64            `json:"entries"`
	Memory    int64            `json:"memory"`
	First     string           `json:"first,omitempty"`
	Last      string           `json:"last,omitempty"`
	Groups    []PartitionGroup `json:"groups"`
}

// PartitionGroup is how far a group has come in a partition.
type PartitionGroup struct {
	Group     string              `json:"group"`
	Owner     string              `json:"owner,omitempty"`
	Lag       int64               `json:"lag"`
	Pending   int64               `json:"pending"`
	Consumers []PartitionConsumer `json:"consumers"`
}

// PartitionConsumer is what a consumer has pending in a partition.
type PartitionConsumer struct {
	Instance string   `json:"instance"`
	Pending  int64    `json:"pending"`
	Idle     Duration `json:"idle"`
}

// PendingPage is what a group has read and not settled.
type PendingPage struct {
	Pending []Pending `json:"pending"`
	Next    string    `json:"next,omitempty"`
}

// Pending is one message that a group has read and not settled.
type Pending struct {
	Ref        string   `json:"ref"`
	ID         string   `json:"id"`
	State      string   `json:"state"`
	Instance   string   `json:"instance"`
	Idle       Duration `json:"idle"`
	Deliveries int      `json:"deliveries"`
}

package cluster

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// maxTopicName is Kafka's limit.
const maxTopicName = 249

// internalPrefix begins the names of topics that are Ferry's own, behind the namespace.
const internalPrefix = "_ferry."

// names makes the names of topics and groups on the brokers. It is the namespace that they begin with.
type names string

// MainTopic is the Kafka topic of a topic.
func (d names) MainTopic(topic string) string { return string(d) + topic }

// MetaTopic has the rows of topics and groups.
func (d names) MetaTopic() string { return string(d) + internalPrefix + "meta" }

// DelayTopic has what is not due yet.
func (d names) DelayTopic() string { return string(d) + internalPrefix + "delay" }

// HeldTopic has what is held, and the marks that void delayed messages.
func (d names) HeldTopic() string { return string(d) + internalPrefix + "held" }

// KVTopic has the commands of named values.
func (d names) KVTopic() string { return string(d) + internalPrefix + "kv" }

// DeadTopic has the dead letters of a topic.
func (d names) DeadTopic(topic string) string { return d.bounded("dead." + topic) }

// InvalidTopic has the broken records of a topic.
func (d names) InvalidTopic(topic string) string { return d.bounded("invalid." + topic) }

// RetryTopic is the log beside a topic where the unfinished of one group wait. The length keeps a.b + c and a + b.c
// apart.
func (d names) RetryTopic(topic, group string) string {
	return d.bounded(fmt.Sprintf("retry.%d.%s.%s", len(topic), topic, group))
}

// besides reports whether a Kafka topic is one of those that lie beside a topic: its retry logs, dead letters and
// what is broken.
func (d names) besides(name string) bool {
	rest, internal := strings.CutPrefix(name, string(d)+internalPrefix)
	kind, _, _ := strings.Cut(rest, ".")
	return internal && (kind == "dead" || kind == "invalid" || kind == "retry")
}

func (d names) bounded(name string) string {
	full := string(d) + internalPrefix + name
	if len(full) <= maxTopicName {
		return full
	}
	kind, _, _ := strings.Cut(name, ".")
	return fmt.Sprintf("%s%s%s.%x", string(d), internalPrefix, kind, sha256.Sum256([]byte(name)))
}

// GroupID is the Kafka group of a group: a colon is in neither name.
func (d names) GroupID(topic, group string) string { return string(d) + topic + ":" + group }

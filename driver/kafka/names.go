package kafka

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// maxTopicName is Kafka's limit.
const maxTopicName = 249

// internal begins the names of topics that are Ferry's own, behind the namespace.
const internal = "_ferry."

func (d *Driver) mainTopic(topic string) string { return d.o.Namespace + topic }

func (d *Driver) metaTopic() string  { return d.o.Namespace + internal + "meta" }
func (d *Driver) delayTopic() string { return d.o.Namespace + internal + "delay" }
func (d *Driver) heldTopic() string  { return d.o.Namespace + internal + "held" }
func (d *Driver) kvTopic() string    { return d.o.Namespace + internal + "kv" }

func (d *Driver) deadTopic(topic string) string    { return d.bounded("dead." + topic) }
func (d *Driver) invalidTopic(topic string) string { return d.bounded("invalid." + topic) }

// sideTopic is the log beside a topic where the unfinished of one group wait. The length keeps a.b + c and a + b.c apart.
func (d *Driver) sideTopic(topic, group string) string {
	return d.bounded(fmt.Sprintf("retry.%d.%s.%s", len(topic), topic, group))
}

func (d *Driver) bounded(name string) string {
	full := d.o.Namespace + internal + name
	if len(full) <= maxTopicName {
		return full
	}
	kind, _, _ := strings.Cut(name, ".")
	return fmt.Sprintf("%s%s%s.%x", d.o.Namespace, internal, kind, sha256.Sum256([]byte(name)))
}

// groupID is the Kafka group of a group: a colon is in neither name.
func (d *Driver) groupID(topic, group string) string { return d.o.Namespace + topic + ":" + group }

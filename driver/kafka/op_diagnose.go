package kafka

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
)

// diagnosis looks at a cluster for ferry doctor.
type diagnosis struct{ *Driver }

// Diagnose looks at the cluster: brokers, and the settings of every topic of ours.
func (d *Driver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	x := diagnosis{d}
	meta, err := d.cluster.Admin.BrokerMetadata(ctx)
	if err != nil {
		return nil, d.cluster.Unreached("asking the brokers", err)
	}
	n := len(meta.Brokers)
	out := []driver.Finding{finding(driver.SeverityOK, "brokers", fmt.Sprintf("%d brokers answer", n), ""),
		x.replicaFinding(n), x.offsetsFinding(ctx, meta.Controller), x.clockFinding(ctx)}
	topics, err := x.topicFindings(ctx)
	return append(append(out, topics...), x.kvFindings(ctx)...), err
}

// finding is what is said of a subject, with what to do if that is not fine.
func finding(s driver.Severity, subject, text, hint string) driver.Finding {
	return driver.Finding{Severity: s, Subject: subject, Text: text, Hint: hint}
}

// kvFindings reads the named values, if there are any, and looks for records that mean nothing.
func (d diagnosis) kvFindings(ctx context.Context) []driver.Finding {
	if d.registry.Meta.Get(kvKey) == nil {
		return nil
	}
	n, last, err := d.kv.Damaged(ctx)
	switch {
	case err != nil:
		return []driver.Finding{finding(driver.SeverityError, d.cluster.KVTopic(), "the named values cannot be read",
			err.Error())}
	case n > 0:
		return []driver.Finding{finding(driver.SeverityWarning, d.cluster.KVTopic(),
			fmt.Sprintf("%d records mean nothing and are passed over by everybody: %v", n, last),
			"find out who writes to this topic besides Ferry")}
	}
	return nil
}

func (d diagnosis) replicaFinding(brokers int) driver.Finding {
	switch {
	case d.cluster.Settings.Replicas == 1 && brokers >= 3:
		return finding(driver.SeverityWarning, "replicas",
			"new topics get one replica, although there are enough brokers for three", "open with replicas=3")
	case d.cluster.Settings.Replicas == 1:
		return finding(driver.SeverityWarning, "replicas", "topics have one replica: a publish survives kill -9 of the "+
			"broker, not the loss of its disk nor a power loss", "run three brokers and open with replicas=3")
	}
	return finding(driver.SeverityOK, "replicas", fmt.Sprintf("new topics get %d replicas, and a publish waits for 2",
		d.cluster.Settings.Replicas), "")
}

// offsetsFinding looks how long brokers keep the offsets of a group that nobody consumes.
func (d diagnosis) offsetsFinding(ctx context.Context, broker int32) driver.Finding {
	minutes := d.cluster.BrokerMillis(ctx, broker, "offsets.retention.minutes") / time.Millisecond
	kept := minutes * time.Minute
	switch {
	case kept == 0:
		return finding(driver.SeverityUnknown, "offsets", "how long brokers keep the offsets of idle groups is hidden",
			"allow DESCRIBE_CONFIGS on the cluster")
	case kept < 2*aliveEvery:
		return finding(driver.SeverityError, "offsets", fmt.Sprintf("brokers forget the offsets of a group after %v without "+
			"consumers, and it would begin again", kept), "set offsets.retention.minutes=10080 on the brokers")
	}
	return finding(driver.SeverityOK, "offsets", fmt.Sprintf("offsets of idle groups are kept %v, and committed again "+
		"every %v while a process of Ferry runs", kept, aliveEvery), "")
}

// clockFinding compares this machine's clock with the brokers'. Ferry goes by theirs.
func (d diagnosis) clockFinding(ctx context.Context) driver.Finding {
	if err := d.cluster.Probe(ctx); err != nil {
		return finding(driver.SeverityUnknown, "clock", "the time of the brokers could not be read", err.Error())
	}
	off := time.Since(d.cluster.Now()).Round(time.Millisecond)
	if off.Abs() > time.Second {
		return finding(driver.SeverityWarning, "clock", fmt.Sprintf("this machine's clock is %v ahead of the brokers'; "+
			"delays go by theirs", off), "let NTP set both")
	}
	return finding(driver.SeverityOK, "clock", "this machine and the brokers agree within a second", "")
}

// demand is a setting that a topic must have, and what happens otherwise.
type demand struct {
	setting, want, why string
	fine               func(have string) bool
}

func atLeast(n int) func(string) bool {
	return func(have string) bool { v, err := strconv.Atoi(have); return err == nil && v >= n }
}

// demands are those on a topic with messages, and on a compacted one.
func (d diagnosis) demands(compact bool) []demand {
	insync := min(2, d.cluster.Settings.Replicas)
	out := []demand{
		{"min.insync.replicas", strconv.Itoa(insync), "an acknowledged publish may be lost with one broker", atLeast(insync)},
		{"unclean.leader.election.enable", "false", "a broker that is behind may become leader, and acknowledged messages " +
			"are lost", nil},
		{"message.timestamp.type", "LogAppendTime", "delays and TTL go by clocks of producers", nil},
		{"max.message.bytes", strconv.Itoa(cluster.BatchLimit(d.cluster.Settings.MaxBody, compact)),
			"bodies that are allowed are refused", atLeast(cluster.LeastLimit(d.cluster.Settings.MaxBody, compact))},
	}
	if compact {
		return append(out, demand{"cleanup.policy", "compact,delete", "rows are deleted or never cleaned up",
			func(have string) bool { return strings.Contains(have, "compact") }},
			demand{"retention.ms", "-1", "rows are deleted by age", nil})
	}
	return append(out, demand{"cleanup.policy", "delete", "messages of the same key replace each other", nil},
		demand{"retention.ms", "-1", "messages are deleted by age, handled or not", nil},
		demand{"retention.bytes", "-1", "messages are deleted by size, handled or not", nil})
}

// topicFindings compares the topics of ours with what they should be.
func (d diagnosis) topicFindings(ctx context.Context) (out []driver.Finding, err error) {
	if err := d.registry.Meta.Sync(ctx); err != nil {
		return nil, err
	}
	plain, compact := []string{}, []string{d.cluster.MetaTopic()}
	if d.registry.Meta.Get(cluster.DelaysKey) != nil {
		plain, compact = append(plain, d.cluster.DelayTopic()), append(compact, d.cluster.HeldTopic())
	}
	if d.registry.Meta.Get(kvKey) != nil {
		plain = append(plain, d.cluster.KVTopic())
	}
	for _, name := range d.registry.TopicNames() {
		plain, compact = append(plain, d.cluster.MainTopic(name)),
			append(compact, d.cluster.DeadTopic(name), d.cluster.InvalidTopic(name))
		for _, g := range d.registry.GroupsOf(name) {
			compact = append(compact, d.cluster.RetryTopic(name, g))
		}
	}
	details, err := d.cluster.Admin.ListTopics(ctx, append(plain, compact...)...)
	if err != nil {
		return nil, d.cluster.Unreached("reading the metadata", err)
	}
	out = append(out, d.partitionFindings(details)...)
	for names, isCompact := range map[*[]string]bool{&plain: false, &compact: true} {
		configs, err := d.cluster.Admin.DescribeTopicConfigs(ctx, *names...)
		if err != nil {
			return out, d.cluster.Unreached("reading settings", err)
		}
		for _, c := range configs {
			out = append(out, d.configFindings(c, isCompact)...)
		}
	}
	if len(out) == 0 {
		out = append(out, finding(driver.SeverityOK, "topics", fmt.Sprintf("%d topics have safe settings",
			len(plain)+len(compact)), ""))
	}
	return out, nil
}

func (d diagnosis) configFindings(c kadm.ResourceConfig, compact bool) (out []driver.Finding) {
	if c.Err != nil {
		return []driver.Finding{finding(driver.SeverityUnknown, c.Name, "its settings could not be read: "+c.Err.Error(),
			"allow DESCRIBE_CONFIGS on it")}
	}
	have := map[string]string{}
	for _, x := range c.Configs {
		have[x.Key] = x.MaybeValue()
	}
	for _, want := range d.demands(compact) {
		v, known := have[want.setting]
		if !known || v == want.want || want.fine != nil && want.fine(v) {
			continue
		}
		out = append(out, finding(driver.SeverityError, c.Name, fmt.Sprintf("%s is %s: %s", want.setting, v, want.why),
			fmt.Sprintf("kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s "+
				"--add-config '%s=[%s]'", d.cluster.Settings.Brokers[0], c.Name, want.setting, want.want)))
	}
	return out
}

// partitionFindings looks for topics that are missing, grew behind our back, or have too few replicas.
func (d diagnosis) partitionFindings(details kadm.TopicDetails) (out []driver.Finding) {
	for _, t := range details.Sorted() {
		if t.Err != nil {
			out = append(out, finding(driver.SeverityError, t.Topic, "it cannot be used: "+t.Err.Error(),
				"see whether somebody deleted it, and the ACLs"))
			continue
		}
		few := 0
		for _, p := range t.Partitions {
			if len(p.Replicas) < d.cluster.Settings.Replicas {
				few++
			}
		}
		if few > 0 {
			out = append(out, finding(driver.SeverityError, t.Topic, fmt.Sprintf("%d partitions have fewer than %d replicas",
				few, d.cluster.Settings.Replicas), "add replicas with kafka-reassign-partitions.sh"))
		}
	}
	for _, name := range d.registry.TopicNames() {
		n := len(details[d.cluster.MainTopic(name)].Partitions)
		for _, g := range d.registry.GroupsOf(name) {
			if had := len(details[d.cluster.RetryTopic(name, g)].Partitions); had > n {
				out = append(out, finding(driver.SeverityError, name, fmt.Sprintf("it has %d partitions, and its group %q was "+
					"made for %d: what waits in the others is not seen", n, g, had), d.registry.WidenHint(name, had)))
			}
		}
	}
	for _, t := range d.registry.AllKnown() {
		if n := len(details[t.Main].Partitions); n > t.Partitions {
			out = append(out, finding(driver.SeverityError, t.Name, fmt.Sprintf("it had %d partitions and has %d now: the "+
				"order of keys is broken across that moment", t.Partitions, n),
				"restart the programs that use it, and add partitions to its retry topics too"))
		}
	}
	return out
}

package consumer

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
)

// balancer is the cooperative sticky strategy, by the same name, but for members that drain: they say so when they
// join, and which partitions they still hold messages of. They keep these and get no others, as long as there is a
// member that does not drain. A leader that does not know of it treats them like all others.
type balancer struct {
	kgo.GroupBalancer
	draining func() (kept []int32, draining bool) // is asked with each join
}

func newBalancer(draining func() (kept []int32, draining bool)) *balancer {
	return &balancer{kgo.CooperativeStickyBalancer(), draining}
}

// drainSeparator begins what is added to a member's metadata when it drains. No topic has a zero byte in its name.
var drainSeparator = []byte("\x00ferry-drain\x00")

// JoinGroupMetadata adds that a member drains.
func (x *balancer) JoinGroupMetadata(interests []string, owned map[string][]int32, generation int32) []byte {
	data := x.GroupBalancer.JoinGroupMetadata(interests, owned, generation)
	kept, draining := x.draining()
	var meta kmsg.ConsumerMemberMetadata
	if !draining || meta.ReadFrom(data) != nil {
		return data
	}
	text, _ := json.Marshal(kept) // plain data: never fails
	meta.UserData = slices.Concat(meta.UserData, drainSeparator, text)
	return meta.AppendTo(nil)
}

// keeps is which partitions a member says that it keeps, if it drains.
func keeps(meta *kmsg.ConsumerMemberMetadata) (kept []int32, draining bool) {
	_, text, draining := bytes.Cut(meta.UserData, drainSeparator)
	if !draining || json.Unmarshal(text, &kept) != nil {
		return nil, false
	}
	return kept, true
}

// MemberBalancer lets Balance make the plan.
func (x *balancer) MemberBalancer(members []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{},
	error) {
	b, err := kgo.NewConsumerBalancer(x, members)
	return b, b.MemberTopics(), err
}

// Balance shares the partitions out among members that do not drain, takes from these what others keep, and lets what
// changes its owner go first. Where all drain each keeps what it owns, since nobody else would receive it either.
func (x *balancer) Balance(b *kgo.ConsumerBalancer, topics map[string]int32) kgo.IntoSyncAssignment {
	sticky := x.GroupBalancer.(kgo.ConsumerBalancerBalance)
	staying := stayingOf(b)
	if len(staying) == len(b.Members()) {
		return sticky.Balance(b, topics)
	}
	all := len(staying) == 0
	if all {
		staying = b.Members()
	}
	among, err := kgo.NewConsumerBalancer(sticky, staying)
	if err != nil {
		b.SetError(err)
		return nil
	}
	shared, plan, keeper := sticky.Balance(among, topics).(*kgo.BalancePlan).AsMemberIDMap(), b.NewPlan(),
		keepers(b, topics, all)
	b.EachMember(func(m *kmsg.JoinGroupResponseMember, _ *kmsg.ConsumerMemberMetadata) {
		for topic, ids := range shared[m.MemberID] {
			for _, id := range ids {
				if keeper[compacted.TopicPartition{Topic: topic, Partition: id}] == "" {
					plan.AddPartition(m, topic, id)
				}
			}
		}
		for at, id := range keeper {
			if id == m.MemberID {
				plan.AddPartition(m, at.Topic, at.Partition)
			}
		}
	})
	plan.AdjustCooperative(b)
	return plan
}

// stayingOf returns the members that do not drain.
func stayingOf(b *kgo.ConsumerBalancer) (staying []kmsg.JoinGroupResponseMember) {
	b.EachMember(func(m *kmsg.JoinGroupResponseMember, meta *kmsg.ConsumerMemberMetadata) {
		if _, draining := keeps(meta); !draining {
			staying = append(staying, *m)
		}
	})
	return staying
}

// keepers tells which members keep which partitions: those who drain what they say, or all that they own. Who was away
// for a generation may name what is with another member by now; the latest one counts.
func keepers(b *kgo.ConsumerBalancer, topics map[string]int32, all bool) map[compacted.TopicPartition]string {
	keeper, latest := map[compacted.TopicPartition]string{}, map[compacted.TopicPartition]int32{}
	b.EachMember(func(m *kmsg.JoinGroupResponseMember, meta *kmsg.ConsumerMemberMetadata) {
		kept, draining := keeps(meta)
		for _, o := range meta.OwnedPartitions {
			for _, id := range o.Partitions {
				at := compacted.TopicPartition{Topic: o.Topic, Partition: id}
				if generation, named := latest[at]; id >= topics[o.Topic] || named && generation >= meta.Generation {
					continue
				}
				latest[at] = meta.Generation
				delete(keeper, at)
				if draining && (all || slices.Contains(kept, id)) {
					keeper[at] = m.MemberID
				}
			}
		}
	})
	return keeper
}

// Drain ends receiving. When no subscription of this process receives any more, the partitions of which it holds
// nothing go to other members, and each of the others as soon as its last message is settled; see PassOn, which is
// called every 200 ms.
func (s *subscription) Drain(context.Context) error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.drained = true
	s.m.wakeAll()
	return nil
}

// keeps is what the group is told with each join: which partitions we hold messages of, if we drain.
func (m *member) keeps() (kept []int32, draining bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = nil
	if !m.draining {
		return nil, false
	}
	for id, p := range m.parts {
		if p.leased > 0 {
			m.kept = append(m.kept, id)
		}
	}
	slices.Sort(m.kept) // the same list for the same partitions: others would be a reason to rebalance
	return slices.Clone(m.kept), true
}

// PassOn joins the group again when this process begins to drain, or receives again because somebody subscribes, and
// when nothing is leased any more of a partition that the group was told we keep.
func (m *member) PassOn() {
	m.mu.Lock()
	draining := m.draining || len(m.subs) > 0 // without any it leaves the group
	for s := range m.subs {
		draining = draining && s.drained
	}
	settled := draining && slices.ContainsFunc(m.kept,
		func(id int32) bool { return m.parts[id] == nil || m.parts[id].leased == 0 })
	rejoin := settled || draining != m.draining
	m.draining = draining
	if rejoin {
		m.kept = nil // asked for once; the join tells what is left
	}
	m.mu.Unlock()
	if rejoin {
		m.cl.ForceRebalance()
	}
}

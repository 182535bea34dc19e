package consumer

import (
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// joining is a member of a group with what it owns, and what it keeps while it drains; nil if it does not.
type joining struct {
	id          string
	owned, kept []int32
	missed      int32 // generations
}

func (j joining) member(t *testing.T, plain bool) kmsg.JoinGroupResponseMember {
	t.Helper()
	var x kgo.GroupBalancer = newBalancer(func() ([]int32, bool) { return j.kept, j.kept != nil })
	if plain {
		x = kgo.CooperativeStickyBalancer()
	}
	m := kmsg.NewJoinGroupResponseMember()
	m.MemberID = j.id
	m.ProtocolMetadata = x.JoinGroupMetadata([]string{"orders"}, map[string][]int32{"orders": j.owned}, 3-j.missed)
	return m
}

// planned is what a leader gives to each member.
func planned(t *testing.T, leader kgo.GroupBalancer, members ...kmsg.JoinGroupResponseMember) map[string][]int32 {
	t.Helper()
	b, _, err := leader.MemberBalancer(members)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := b.(kgo.GroupMemberBalancerOrError).BalanceOrError(map[string]int32{"orders": 6})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]int32{}
	for id, topics := range plan.(*kgo.BalancePlan).AsMemberIDMap() {
		out[id] = slices.Sorted(slices.Values(topics["orders"]))
	}
	return out
}

// TestBalanceWithDraining: members that drain keep what they hold and get nothing else; what they give up goes to
// others only when they have.
func TestBalanceWithDraining(t *testing.T) {
	t.Parallel()
	leader := newBalancer(func() ([]int32, bool) { return nil, false })
	for name, c := range map[string]struct {
		members []joining
		want    map[string][]int32
	}{
		"before it gives up": {[]joining{{"a", []int32{0, 1, 2}, []int32{1}, 0}, {"b", []int32{3, 4, 5}, nil, 0}},
			map[string][]int32{"a": {1}, "b": {3, 4, 5}}},
		"after": {[]joining{{"a", []int32{1}, []int32{1}, 0}, {"b", []int32{3, 4, 5}, nil, 0}},
			map[string][]int32{"a": {1}, "b": {0, 2, 3, 4, 5}}},
		"holding nothing": {[]joining{{"a", nil, []int32{}, 0}, {"b", []int32{3, 4, 5}, nil, 0}},
			map[string][]int32{"a": nil, "b": {0, 1, 2, 3, 4, 5}}},
		"what it does not own": {[]joining{{"a", []int32{1}, []int32{1, 3}, 0}, {"b", []int32{0, 2, 3, 4, 5}, nil, 0}},
			map[string][]int32{"a": {1}, "b": {0, 2, 3, 4, 5}}},
		"alone": {[]joining{{"a", []int32{0, 1, 2, 3, 4, 5}, []int32{1}, 0}},
			map[string][]int32{"a": {0, 1, 2, 3, 4, 5}}},
		"all": {[]joining{{"a", []int32{0, 1, 2}, []int32{1}, 0}, {"b", []int32{3, 4, 5}, []int32{}, 0}},
			map[string][]int32{"a": {0, 1, 2}, "b": {3, 4, 5}}},
		"all, one after the other": {[]joining{{"a", []int32{1}, []int32{1}, 0},
			{"b", []int32{0, 2, 3, 4, 5}, []int32{0, 2, 3, 4, 5}, 0}},
			map[string][]int32{"a": {1}, "b": {0, 2, 3, 4, 5}}},
		"all, and one has left": {[]joining{{"a", []int32{1}, []int32{1}, 0}, {"b", []int32{0, 2, 3, 4}, []int32{}, 0}},
			map[string][]int32{"a": {1, 5}, "b": {0, 2, 3, 4}}},
		"two of three": {[]joining{{"a", []int32{0, 1}, []int32{1}, 0}, {"b", []int32{2, 3}, []int32{2, 3}, 0},
			{"c", []int32{4, 5}, nil, 0}},
			map[string][]int32{"a": {1}, "b": {2, 3}, "c": {4, 5}}},
		"two of three, after": {[]joining{{"a", []int32{1}, []int32{1}, 0}, {"b", []int32{2, 3}, []int32{2, 3}, 0},
			{"c", []int32{4, 5}, nil, 0}},
			map[string][]int32{"a": {1}, "b": {2, 3}, "c": {0, 4, 5}}},
		"what another owns by now": {[]joining{{"a", []int32{1, 3}, []int32{1, 3}, 1}, {"b", []int32{0, 2, 3, 4, 5}, nil, 0}},
			map[string][]int32{"a": {1}, "b": {0, 2, 3, 4, 5}}},
		"a partition that is gone": {[]joining{{"a", []int32{1, 9}, []int32{1, 9}, 0}, {"b", []int32{0, 2, 3, 4, 5}, nil, 0}},
			map[string][]int32{"a": {1}, "b": {0, 2, 3, 4, 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var members []kmsg.JoinGroupResponseMember
			for _, j := range c.members {
				members = append(members, j.member(t, false))
			}
			if got := planned(t, leader, members...); !reflect.DeepEqual(got, c.want) {
				t.Errorf("the plan is %v, want %v", got, c.want)
			}
		})
	}
}

// TestBalanceWithOlderMembers: a leader that knows nothing of draining leaves those who drain what they have, and one
// that does gives older members what others give up.
func TestBalanceWithOlderMembers(t *testing.T) {
	t.Parallel()
	a, b := joining{"a", []int32{0, 1, 2}, []int32{1}, 0}, joining{"b", []int32{3, 4, 5}, nil, 0}
	want := map[string][]int32{"a": {0, 1, 2}, "b": {3, 4, 5}}
	if got := planned(t, kgo.CooperativeStickyBalancer(), a.member(t, false), b.member(t, true)); !reflect.DeepEqual(got,
		want) {
		t.Errorf("an older leader plans %v, want %v", got, want)
	}
	a.owned = []int32{1}
	want = map[string][]int32{"a": {1}, "b": {0, 2, 3, 4, 5}}
	if got := planned(t, newBalancer(func() ([]int32, bool) { return nil, false }), a.member(t, false),
		b.member(t, true)); !reflect.DeepEqual(got, want) {
		t.Errorf("the plan for an older member is %v, want %v", got, want)
	}
}

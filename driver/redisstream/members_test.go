package redisstream

import (
	"fmt"
	"testing"
)

// Everybody gets a fair share, and few partitions move when one member comes or goes.
func TestShareIsFairAndMovesLittle(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 8, 64} {
		var members, before []string
		for n := 1; n <= 20; n++ {
			members = append(members, fmt.Sprintf("member-%d", n))
			plan := share(members, partitions)
			has := map[string]int{}
			moved := 0
			for i, m := range plan {
				has[m]++
				if before != nil && before[i] != m {
					moved++
				}
			}
			for _, m := range members {
				if least := partitions / n; has[m] < least || has[m] > least+1 {
					t.Errorf("%d partitions, %d members: %s has %d", partitions, n, m, has[m])
				}
			}
			if before != nil && moved > partitions/2+1 {
				t.Errorf("%d partitions: %d moved when member %d came", partitions, moved, n)
			}
			before = plan
		}
	}
}

func TestShareOfNobody(t *testing.T) {
	t.Parallel()
	if plan := share(nil, 8); plan != nil {
		t.Errorf("a plan without members: %v", plan)
	}
}

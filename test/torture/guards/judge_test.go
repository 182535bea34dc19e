package guards_test

import (
	"strings"
	"testing"
	"time"
)

// TestJudgeAccuses: each broken promise is seen, and what may be innocent is not accused.
func TestJudgeAccuses(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	ms := func(n int) time.Time { return at.Add(time.Duration(n) * time.Millisecond) }
	pass := func(from, to int, ticket uint64) event {
		return event{Kind: admitted, Key: "k", From: ms(from), At: ms(to), Ticket: ticket}
	}
	begin := func(p int, id string, n int) event {
		return event{Process: p, Kind: started, ID: id, Key: id, At: ms(n), Slot: ms(n).Add(lease), Mark: ms(n).Add(lease)}
	}
	many := func(n, apart int) (all []event) {
		for i := range n {
			all = append(all, pass(i*apart, i*apart+1, uint64(i+1)))
		}
		return all
	}
	full := int(window.Milliseconds())
	for name, c := range map[string]struct {
		tape []event
		want string
	}{
		"nine at once":               {many(limit+1, 1), "were admitted within"},
		"eight at once":              {many(limit, 1), ""},
		"nine in more than a window": {many(limit+1, full/limit+1), ""},
		"the answer was late": {append(many(limit, 1), event{Kind: admitted, Key: "k", From: ms(5), At: ms(full + 2),
			Ticket: 99}), ""},
		"one was returned": {append(many(limit+1, 1), event{Kind: returned, Key: "k", Ticket: 3}), ""},
		"four slots": {[]event{begin(1, "a", 0), begin(1, "b", 1), begin(2, "c", 2), begin(3, "d", 3)},
			"handlers at once"},
		"a lease ended": {[]event{begin(1, "a", 0), begin(1, "b", 1), begin(2, "c", 2), begin(3, "d", 2001)},
			""},
		"handled at once":      {[]event{begin(1, "a", 0), begin(2, "a", 1)}, "by processes 1 and 2 at once"},
		"handled after a kill": {[]event{begin(1, "a", 0), {Process: 1, Kind: killed}, begin(2, "a", 1)}, ""},
		"handled again": {[]event{begin(1, "a", 0), {Process: 1, Kind: done, ID: "a"}, {Kind: marked, ID: "a"},
			begin(2, "a", 1)}, "after its work was marked"},
		"out of order": {[]event{{Kind: started, ID: "b", Key: "k", Seq: 1, At: at}}, "before 0 was done"},
	} {
		got := strings.Join(judge(c.tape).problems, "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

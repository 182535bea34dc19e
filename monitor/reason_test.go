package monitor

import (
	"testing"
	"time"
)

// Each code has a subject and a sentence, with the values that belong to it.
func TestReasonsInWords(t *testing.T) {
	t.Parallel()
	group := About{Topic: "orders", Group: "billing", Count: 3, Share: 0.25, Age: 90 * time.Second, Looks: 6,
		PerSecond: 1.5,
		Instance:  "w1", Error: "no route"}
	beside := group
	beside.Groups = []string{"mail"}
	for _, c := range []struct {
		code  Code
		about About
		want  string
	}{
		{CodeUnreachable, About{Error: "no route"}, "broker: not reachable: no route"},
		{CodeMemory, About{Share: 0.834}, "broker: 83 % of its memory is used"},
		{CodeNoTopic, About{Topic: "orders"},
			"topic orders: it does not exist: nothing was ever published to it, or its name is misspelt"},
		{CodeBound, About{Topic: "orders", Share: 0.7}, "topic orders: 70 % of its bound is used"},
		{CodeInvalid, About{Topic: "orders", Count: 2}, "topic orders: 2 messages could not be decoded"},
		{CodeDead, group, "group billing of topic orders: it has 3 dead letters"},
		{CodeNoConsumer, group, "group billing of topic orders: 3 messages wait and nothing consumes them"},
		{CodeNoConsumer, beside, "group billing of topic orders: 3 messages wait and nothing consumes them: " +
			"the first publish made this group, and consumers use mail; consume it, or remove it"},
		{CodeOld, group, "group billing of topic orders: the oldest message has waited 1m30s"},
		{CodeGrowing, group, "group billing of topic orders: the backlog of 3 has grown for 6 looks in a row, by 1.5/s now"},
		{CodeReconnecting, group, "group billing of topic orders: worker w1 has lost the broker: no route"},
		{CodeFailing, group, "group billing of topic orders: 25 % of 3 messages failed in the last minute"},
		{CodeZombies, About{Instance: "w1", Count: 2}, "worker w1: 2 handlers go on although their message was given up"},
		{Code(Overdue), group, "group billing of topic orders: 3 messages are overdue, the oldest by 1m30s"},
		{Code(Unexpired), About{Topic: "orders", Count: 1, Age: time.Minute},
			"topic orders: 1 messages have expired and are still there, the oldest for 1m0s"},
		{Code(Stalled), group,
			"group billing of topic orders: 3 messages are ready and its consumers take none; the oldest waits for 1m30s"},
		{Code(LongRunning), group, "group billing of topic orders: 3 handlers of worker w1 do not return, one for 1m30s"},
	} {
		var h Health
		h.add(Degraded, c.code, c.about)
		if got := h.Reasons[0].String(); got != c.want {
			t.Errorf("%s: %q, want %q", c.code, got, c.want)
		}
	}
}

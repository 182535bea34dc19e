package rig

import (
	"maps"

	"github.com/ferrymq/ferry/test/torture/proxy"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

var both = []string{consumer, producer}

// handlers are the actions that any broker has: they are about handlers, and excuse nothing.
func handlers() schedule.Actions {
	return schedule.Actions{
		"slow": {Roles: []string{consumer}, Lasting: true, Value: "a duration", Help: "a few handlers take this long"},
		"fail": {Roles: []string{consumer}, Lasting: true, Value: "a share between 0 and 1",
			Help: "this share of handlers fails"},
		"panic": {Roles: []string{consumer}, Lasting: true, Value: "a share between 0 and 1",
			Help: "this share of handlers panics"},
	}
}

// signals are what can be done to any process.
func signals(roles ...string) schedule.Actions {
	return schedule.Actions{
		"kill": {Roles: roles, Help: "kill -9; it is started again"},
		"term": {Roles: roles, Help: "SIGTERM; it is started again"},
		"stop": {Roles: roles, Lasting: true, Help: "SIGSTOP, then SIGCONT"},

		termTwice: {Roles: roles, Value: "a duration", Help: "SIGTERM, and once more so much later; it is started again"},
		termKill: {Roles: roles, Value: "a duration", Help: "SIGTERM, and kill -9 so much later, if it is still there; it " +
			"is started again"},
	}
}

// termKill is what a second signal does to most programs, and a supervisor that has no patience.
const termKill = "term-kill"

// termTwice is what a supervisor does that asks again.
const termTwice = "term-twice"

// seams are what the driver of a process can be made to suffer.
func seams() schedule.Actions {
	return schedule.Actions{
		"lose-renewals": {Roles: []string{consumer}, Lasting: true, Help: "its leases are not renewed"},
		"clock": {Roles: []string{consumer}, Lasting: true, Value: "an offset such as 1h",
			Help: "the broker's clock is this far from its own"},
	}
}

// calls are what can happen to the calls of a process without a network.
func calls() schedule.Actions {
	return schedule.Actions{
		"cut":          {Roles: both, Lasting: true, Help: "its requests do not arrive"},
		"lose-replies": {Roles: both, Lasting: true, Help: "its requests are carried out, the replies are lost"},
	}
}

// network is what the proxy in front of a process can do.
func network() schedule.Actions {
	return schedule.Actions{
		string(proxy.Cut):       {Roles: both, Lasting: true, Help: "its connections are reset, new ones too"},
		string(proxy.BlackHole): {Roles: both, Lasting: true, Help: "nothing passes, and nobody is told"},
		string(proxy.Latency): {Roles: both, Lasting: true, Value: "a duration",
			Help: "everything is delayed, each way"},
		string(proxy.Throttle): {Roles: both, Lasting: true, Value: "a duration",
			Help: "a KiB takes this long, each way"},
		string(proxy.LoseRequests): {Roles: both, Lasting: true, Help: "nothing passes to the server"},
		string(proxy.LoseReplies):  {Roles: both, Lasting: true, Help: "nothing passes from the server"},
		string(proxy.ResetReply):   {Roles: both, Lasting: true, Help: "connections are reset in the middle of a reply"},
	}
}

// together merges tables of actions.
func together(tables ...schedule.Actions) schedule.Actions {
	all := schedule.Actions{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// excuses are the actions on a process after which its leases may be lost. Whatever happens to a server is an excuse.
var excuses = map[string]bool{
	"stop": true, "cut": true, "lose-replies": true, "lose-renewals": true, "blackhole": true, "latency": true,
	"throttle": true, limitFiles: true, "lose-requests": true, "reset-reply": true,
}

package api

// Rule says how many messages of one key are admitted in which time.
type Rule struct {
	Limit     int      `json:"limit,omitempty" minimum:"0"`
	Window    Duration `json:"window,omitempty"`
	Burst     int      `json:"burst,omitempty" minimum:"0"`
	Unlimited bool     `json:"unlimited,omitempty"`
	Penalty   *Penalty `json:"penalty,omitempty"`
}

// Penalty blocks a key after some violations in a row.
type Penalty struct {
	After   int      `json:"after,omitempty" minimum:"0"`
	Block   Duration `json:"block,omitempty"`
	Factor  float64  `json:"factor,omitempty" minimum:"0"`
	Max     Duration `json:"max,omitempty"`
	History Duration `json:"history,omitempty"`
}

// LimitKey is everything known of one key of a limit.
type LimitKey struct {
	Limit       string    `json:"limit"`
	Key         string    `json:"key"`
	Rule        *Rule     `json:"rule,omitempty"`
	Override    *Override `json:"override,omitempty"`
	Used        int       `json:"used"`
	Violations  int       `json:"violations"`
	Level       int       `json:"level"`
	Block       *Blocked  `json:"block,omitempty"`
	Whitelisted bool      `json:"whitelisted"`
	Actor       string    `json:"actor,omitempty"`
	Reason      string    `json:"reason,omitempty"`
}

// Override is a rule for one key, for some time.
type Override struct {
	Rule  *Rule `json:"rule"`
	Until *Time `json:"until"`
}

// Blocked says until when a key is blocked; without a time, for good.
type Blocked struct {
	Until *Time `json:"until,omitempty"`
}

// LimitKeys is a page of keys.
type LimitKeys struct {
	Keys []LimitKey `json:"keys"`
	Next string     `json:"next,omitempty"`
}

// LimitRules are the rules that operators set for limits and their groups.
type LimitRules struct {
	Rules []LimitRule `json:"rules"`
}

// LimitRule is the rule that holds for a limit, or for a group of it, in place of the one that programs give.
type LimitRule struct {
	Limit  string `json:"limit"`
	Group  string `json:"group,omitempty"`
	Rule   *Rule  `json:"rule"`
	At     *Time  `json:"at"`
	Actor  string `json:"actor"`
	Reason string `json:"reason,omitempty"`
}

// SetRule sets the rule of a limit, or of a group of it. It is set whole: one without a penalty has none.
type SetRule struct {
	Rule   Rule   `json:"rule"`
	Reason string `json:"reason,omitempty" maxLength:"1024"`
}

// Because is why something is done.
type Because struct {
	Reason string `json:"reason,omitempty" maxLength:"1024"`
}

// BlockKey keeps a key out.
type BlockKey struct {
	For    Duration `json:"for,omitempty" doc:"For good by default"`
	Reason string   `json:"reason,omitempty" maxLength:"1024"`
}

// OverrideKey gives a key a rule of its own.
type OverrideKey struct {
	Rule   Rule     `json:"rule"`
	For    Duration `json:"for"`
	Reason string   `json:"reason,omitempty" maxLength:"1024"`
}

// LimitVerdict tells whether a message of a key would pass now.
type LimitVerdict struct {
	Passes  bool     `json:"passes"`
	Blocked bool     `json:"blocked"`
	After   Duration `json:"after,omitempty" doc:"When it is worth asking again"`
}

// LimitChanges are what operators did to keys and breakers, newest first.
type LimitChanges struct {
	Changes []LimitChange `json:"changes"`
}

// LimitChange is one thing an operator did.
type LimitChange struct {
	At     *Time    `json:"at"`
	Actor  string   `json:"actor"`
	Reason string   `json:"reason,omitempty"`
	Action string   `json:"action"`
	Limit  string   `json:"limit,omitempty"`
	Group  string   `json:"group,omitempty"`
	Key    string   `json:"key,omitempty"`
	For    Duration `json:"for,omitempty"`
	Rule   *Rule    `json:"rule,omitempty"`
}

// Breakers are what all processes have reported within the last hour.
type Breakers struct {
	Breakers []Breaker `json:"breakers"`
}

// Breaker is the state of one breaker in one process.
type Breaker struct {
	Name      string `json:"name"`
	Instance  string `json:"instance"`
	State     string `json:"state" enum:"closed,open,half_open"`
	Forced    bool   `json:"forced"`
	Since     *Time  `json:"since,omitempty"`
	Seen      *Time  `json:"seen,omitempty"`
	Requests  int    `json:"requests"`
	Failures  int    `json:"failures"`
	InARow    int    `json:"failures_in_a_row"`
	Successes int    `json:"successes"`
}

// ForceBreaker makes a breaker open or closed in all processes; auto leaves it to itself.
type ForceBreaker struct {
	State  string `json:"state" enum:"open,closed,auto"`
	Reason string `json:"reason,omitempty" maxLength:"1024"`
}

package api

// Alert is what is known of one rule and one subject.
type Alert struct {
	Rule         string `json:"rule"`
	Subject      string `json:"subject" doc:"topic/group, a topic, or system"`
	Severity     string `json:"severity" enum:"info,warning,critical,page,emergency"`
	Status       string `json:"status" enum:"pending,firing,resolved"`
	Text         string `json:"text,omitempty"`
	Since        *Time  `json:"since,omitempty"`
	Fired        *Time  `json:"fired,omitempty"`
	Ended        *Time  `json:"ended,omitempty"`
	Notified     *Time  `json:"notified,omitempty"`
	Notices      int    `json:"notices"`
	Acknowledged string `json:"acknowledged,omitempty" doc:"Who takes care of it"`
}

// AlertList is what fires, is about to, or was over lately.
type AlertList struct {
	Alerts []Alert `json:"alerts"`
	// Evaluated is when rules were last evaluated. Alive is false if nobody does.
	Alive     bool     `json:"alive" doc:"Whether anybody evaluates rules"`
	Evaluated *Time    `json:"evaluated,omitempty"`
	Every     Duration `json:"every,omitempty"`
	Rules     int      `json:"rules"`
}

// AlertEntry is something that happened to an alert.
type AlertEntry struct {
	At       *Time  `json:"at"`
	Rule     string `json:"rule"`
	Subject  string `json:"subject"`
	Severity string `json:"severity"`
	What     string `json:"what" enum:"fired,resolved,acknowledged,raised"`
	Text     string `json:"text,omitempty"`
	// Messages are ids that an event is about.
	Messages []string `json:"messages,omitempty" doc:"Ids of messages, the newest first"`
}

// AlertHistory is what happened in the last 7 days, the newest first.
type AlertHistory struct {
	Entries []AlertEntry `json:"entries"`
}

// AlertShown is an alert with what happened to it.
type AlertShown struct {
	Alert
	History []AlertEntry `json:"history"`
}

// Acknowledge says who takes care of an alert.
type Acknowledge struct {
	Who string `json:"who,omitempty" maxLength:"200" doc:"Whoever asks, by default"`
}

// Silence keeps notices back for a time.
type Silence struct {
	ID      string `json:"id,omitempty" doc:"None: it is of the configuration, and ends there"`
	Rule    string `json:"rule,omitempty"`
	Subject string `json:"subject,omitempty"`
	Until   *Time  `json:"until,omitempty"`
	Who     string `json:"who,omitempty"`
	Comment string `json:"comment,omitempty"`
}

// SilenceList is every silence that lasts.
type SilenceList struct {
	Silences []Silence `json:"silences"`
}

// NewSilence keeps notices back from now on.
type NewSilence struct {
	Rule     string   `json:"rule,omitempty" maxLength:"200" doc:"Pattern; all rules by default"`
	Subject  string   `json:"subject,omitempty" maxLength:"400" doc:"Pattern: orders/*; all subjects by default"`
	Duration Duration `json:"duration" doc:"A second to a year"`
	Comment  string   `json:"comment,omitempty" maxLength:"1000"`
}

// AlertRule says what is wrong when.
type AlertRule struct {
	Name      string   `json:"name,omitempty" readOnly:"true" doc:"That of the path"`
	When      string   `json:"when,omitempty" maxLength:"4096" doc:"The condition; none: the rule is of events"`
	Threshold float64  `json:"threshold,omitempty"`
	Severity  string   `json:"severity,omitempty" enum:"info,warning,critical,page,emergency"`
	For       Duration `json:"for,omitempty"`
	Cooldown  Duration `json:"cooldown,omitempty"`
	Channels  []string `json:"channels,omitempty"`
	Text      string   `json:"text,omitempty" maxLength:"4096"`
	Action    string   `json:"action,omitempty" maxLength:"4096"`
	Topics    []string `json:"topics,omitempty"`
	Groups    []string `json:"groups,omitempty"`
	Disabled  bool     `json:"disabled,omitempty"`
	PromQL    string   `json:"promql,omitempty" maxLength:"4096"`
	Kept      bool     `json:"kept,omitempty" readOnly:"true" doc:"It is kept in the broker, not configured"`
}

// AlertRuleList is every rule that is evaluated, and what conditions may name.
type AlertRuleList struct {
	Rules   []AlertRule `json:"rules"`
	Figures []string    `json:"figures"`
}

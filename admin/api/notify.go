package api

// NewNotification is sent to 1 to 100 targets.
type NewNotification struct {
	ID        string         `json:"id,omitempty" maxLength:"64" doc:"Under one id no target is reached twice"`
	Title     string         `json:"title,omitempty" maxLength:"800"`
	Body      string         `json:"body,omitempty" maxLength:"16384"`
	Format    string         `json:"format,omitempty" enum:"text,markdown,html"`
	Priority  string         `json:"priority,omitempty" enum:"low,normal,high,urgent"`
	Targets   []NotifyTarget `json:"targets" minItems:"1" maxItems:"100"`
	Template  string         `json:"template,omitempty" maxLength:"400" doc:"One of the hubs' templates, in place of title and body"`
	Variables map[string]any `json:"variables,omitempty" doc:"With some, title and body are templates"`
	// Data is for channels, Metadata for receivers of webhooks.
	Data     map[string]string `json:"data,omitempty" doc:"What channels want to know: at_all, mention, reply_to"`
	Metadata map[string]string `json:"metadata,omitempty" doc:"Goes along to webhooks"`
	At       *Time             `json:"at,omitempty" doc:"When it is sent; at once by default"`
}

// NotifyTarget is one destination on one channel.
type NotifyTarget struct {
	Channel   string         `json:"channel" maxLength:"128"`
	To        string         `json:"to" maxLength:"1024"`
	Fallbacks []NotifyTarget `json:"fallbacks,omitempty" maxItems:"5"`
}

// Notification is what became of one so far.
type Notification struct {
	ID        string               `json:"id"`
	Status    string               `json:"status" enum:"queued,processing,success,partial,failed,cancelled"`
	Total     int                  `json:"total"`
	Succeeded int                  `json:"succeeded"`
	Failed    int                  `json:"failed"`
	Cancelled int                  `json:"cancelled"`
	Targets   []NotificationTarget `json:"targets"`
}

// NotificationTarget is what became of one target so far. Of a URL only the host is shown.
type NotificationTarget struct {
	Channel        string   `json:"channel"`
	To             string   `json:"to"`
	Status         string   `json:"status"`
	ReachedChannel string   `json:"reached_channel,omitempty" doc:"Who was reached: the target, or a fallback"`
	ReachedTo      string   `json:"reached_to,omitempty"`
	VendorID       string   `json:"vendor_id,omitempty"`
	Digest         string   `json:"digest,omitempty" doc:"The digest that carried it"`
	Code           string   `json:"code,omitempty"`
	Error          string   `json:"error,omitempty"`
	Attempts       int      `json:"attempts"`
	At             *Time    `json:"at,omitempty"`
	Took           Duration `json:"took,omitempty"`
}

// CancelledNotification tells how many targets are not sent to.
type CancelledNotification struct {
	Cancelled int `json:"cancelled"`
}

// NotifyChannel is a channel of the hubs that run.
type NotifyChannel struct {
	Name         string       `json:"name"`
	Destinations []string     `json:"destinations,omitempty" doc:"Names that targets may use; none: addresses"`
	Rates        []NotifyRate `json:"rates,omitempty" doc:"What the vendor allows for each destination"`
	Formats      []string     `json:"formats,omitempty" doc:"Those it shows; none: all"`
	Attaches     bool         `json:"attaches,omitempty"`
	Processes    int          `json:"processes"`
	Sent         uint64       `json:"sent"`
	Failed       uint64       `json:"failed"`
	Retried      uint64       `json:"retried"`
	Limited      uint64       `json:"limited"`
	LastAt       *Time        `json:"last_at,omitempty"`
	LastCode     string       `json:"last_code,omitempty" doc:"Empty: the vendor took the last one"`
	LastError    string       `json:"last_error,omitempty"`
}

// NotifyRate is how many sends a vendor takes within a time.
type NotifyRate struct {
	Sends int      `json:"sends"`
	Per   Duration `json:"per"`
}

// NotifyChannelList is every channel of the hubs that run.
type NotifyChannelList struct {
	Channels []NotifyChannel `json:"channels"`
}

// TestChannel sends a test.
type TestChannel struct {
	To string `json:"to" maxLength:"1024"`
}

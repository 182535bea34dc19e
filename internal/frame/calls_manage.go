package frame

import "github.com/ferrymq/ferry/driver"

// TopicNames is CallTopics: which are asked for, or none for all.
type TopicNames []string

// Walk writes or reads them.
func (x *TopicNames) Walk(w *Walk) { list(w, (*[]string)(x), text[string]) }

// Place is a topic or a group of it, with a flag where a call has one: Paused of CallPause, Fix of CallAudit.
type Place struct {
	Topic, Group string
	Flag         bool
}

// Walk writes or reads it.
func (x *Place) Walk(w *Walk) {
	text(w, &x.Topic)
	text(w, &x.Group)
	w.flag(&x.Flag)
}

// Config is CallEnsureTopic and CallAlterTopic.
type Config struct {
	Topic  string
	Config driver.TopicConfig
}

// Walk writes or reads it.
func (x *Config) Walk(w *Walk) {
	text(w, &x.Topic)
	topicConfig(w, &x.Config)
}

// Group is CallEnsureGroup.
type Group struct {
	Topic, Group string
	Options      driver.GroupOptions
}

// Walk writes or reads it.
func (x *Group) Walk(w *Walk) {
	text(w, &x.Topic)
	text(w, &x.Group)
	count(w, &x.Options.Order)
	position(w, &x.Options.Start)
}

// Reset is CallReset.
type Reset struct {
	Topic, Group string
	Options      driver.ResetOptions
}

// Walk writes or reads it.
func (x *Reset) Walk(w *Walk) {
	text(w, &x.Topic)
	text(w, &x.Group)
	position(w, &x.Options.To)
	w.flag(&x.Options.DryRun)
	w.flag(&x.Options.Force)
}

// Number is the answer to CallPurge.
type Number int

// Walk writes or reads it.
func (x *Number) Walk(w *Walk) { number(w, x) }

type (
	// Target is CallGet.
	Target driver.Target
	// Targets are CallDelete.
	Targets []driver.Target
	// Moves are CallMove.
	Moves []driver.Move
	// Query is CallBrowse.
	Query driver.Query
	// Page is the answer to CallBrowse.
	Page driver.Page
	// Topics are the answer to CallTopics.
	Topics []driver.TopicInfo
	// Stats are the answer to CallStats.
	Stats driver.TopicStats
	// Entries are the answer to CallGet.
	Entries []driver.Entry
	// Usage is the answer to CallUsage.
	Usage driver.Usage
	// Findings are the answer to CallDiagnose.
	Findings []driver.Finding
	// AuditReport is the answer to CallAudit.
	AuditReport driver.AuditReport
	// ResetReport is the answer to CallReset and CallReplay.
	ResetReport driver.ResetReport
)

// Walk writes or reads it.
func (x *Target) Walk(w *Walk) { target(w, (*driver.Target)(x)) }

// Walk writes or reads them.
func (x *Targets) Walk(w *Walk) { list(w, (*[]driver.Target)(x), target) }

// Walk writes or reads them.
func (x *Moves) Walk(w *Walk) { list(w, (*[]driver.Move)(x), move) }

// Walk writes or reads it.
func (x *Query) Walk(w *Walk) { query(w, (*driver.Query)(x)) }

// Walk writes or reads it.
func (x *Page) Walk(w *Walk) { page(w, (*driver.Page)(x)) }

// Walk writes or reads them.
func (x *Topics) Walk(w *Walk) { list(w, (*[]driver.TopicInfo)(x), topicInfo) }

// Walk writes or reads them.
func (x *Stats) Walk(w *Walk) { topicStats(w, (*driver.TopicStats)(x)) }

// Walk writes or reads them.
func (x *Entries) Walk(w *Walk) { list(w, (*[]driver.Entry)(x), entry) }

// Walk writes or reads it.
func (x *Usage) Walk(w *Walk) { usage(w, (*driver.Usage)(x)) }

// Walk writes or reads them.
func (x *Findings) Walk(w *Walk) { list(w, (*[]driver.Finding)(x), finding) }

// Walk writes or reads it.
func (x *AuditReport) Walk(w *Walk) { auditReport(w, (*driver.AuditReport)(x)) }

// Walk writes or reads it.
func (x *ResetReport) Walk(w *Walk) {
	number(w, &x.Replayed)
	number(w, &x.Skipped)
}

package main

import (
	"strings"
	"time"

	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// alertView is the JSON form of an alert. It is stable.
type alertView struct {
	Rule         string         `json:"rule"`
	Subject      string         `json:"subject"`
	Severity     string         `json:"severity"`
	Status       string         `json:"status"`
	Since        *jsontime.Time `json:"since,omitempty"`
	Fired        *jsontime.Time `json:"fired,omitempty"`
	Ended        *jsontime.Time `json:"ended,omitempty"`
	Notified     *jsontime.Time `json:"notified,omitempty"`
	Notices      int            `json:"notices"`
	Acknowledged string         `json:"acknowledged,omitempty"`
	Text         string         `json:"text,omitempty"`
}

func viewAlert(a alert.Alert) alertView {
	return alertView{Rule: a.Rule, Subject: a.Subject, Severity: string(a.Severity), Status: string(a.Status),
		Since: jsontime.At(a.Since), Fired: jsontime.At(a.Fired), Ended: jsontime.At(a.Ended),
		Notified: jsontime.At(a.Notified), Notices: a.Notices,
		Acknowledged: a.Acknowledged, Text: a.Text}
}

var alertColumns = []column[alertView]{
	{title: "rule", width: 40, cell: func(v alertView) any { return v.Rule }},
	{title: "subject", width: 40, cell: func(v alertView) any { return v.Subject }},
	{title: "severity", cell: func(v alertView) any { return v.Severity }},
	{title: "status", cell: func(v alertView) any { return v.Status }},
	{title: "since", cell: func(v alertView) any { return textOf(v.Since) }},
	{title: "notices", number: true, cell: func(v alertView) any { return v.Notices }},
	{title: "who", width: 20, cell: func(v alertView) any { return v.Acknowledged }},
	{title: "text", width: 60, cell: func(v alertView) any { return v.Text }},
}

// alertChange is what was done.
type alertChange struct {
	Rule    string `json:"rule,omitempty"`
	Subject string `json:"subject,omitempty"`
	Silence string `json:"silence,omitempty"`
	Who     string `json:"who,omitempty"`
	Result  string `json:"result"`
}

// beatView tells when alerts were last evaluated.
type beatView struct {
	At    *jsontime.Time    `json:"at"`
	Every jsontime.Duration `json:"every"`
	Rules int               `json:"rules"`
	// Unjudged are rules that cannot fire at present, since nobody tells the figures in Missing.
	Unjudged []string `json:"unjudged,omitempty"`
	Missing  []string `json:"missing,omitempty"`
}

// showBeat prints it for people.
func (r *remote) showBeat(v beatView, every time.Duration) error {
	err := r.sayf("%d rules were evaluated at %s, every %v", v.Rules, textOf(v.At), every)
	if err != nil || len(v.Unjudged) == 0 {
		return err
	}
	return r.sayf("%d of them cannot fire, since nobody tells %s: %s", len(v.Unjudged), strings.Join(v.Missing, ", "),
		strings.Join(v.Unjudged, ", "))
}

// silenceView is the JSON form of a silence.
type silenceView struct {
	Silence string         `json:"silence"`
	Rule    string         `json:"rule,omitempty"`
	Subject string         `json:"subject,omitempty"`
	Until   *jsontime.Time `json:"until"`
	Who     string         `json:"who,omitempty"`
	Comment string         `json:"comment,omitempty"`
}

func viewSilence(s alert.Silence) silenceView {
	return silenceView{Silence: s.ID, Rule: s.Rule, Subject: s.Subject, Until: jsontime.At(s.Until), Who: s.Who,
		Comment: s.Comment}
}

var silenceColumns = []column[silenceView]{
	{title: "silence", cell: func(v silenceView) any { return v.Silence }},
	{title: "rule", width: 40, cell: func(v silenceView) any { return v.Rule }},
	{title: "subject", width: 40, cell: func(v silenceView) any { return v.Subject }},
	{title: "until", cell: func(v silenceView) any { return textOf(v.Until) }},
	{title: "who", width: 20, cell: func(v silenceView) any { return v.Who }},
	{title: "comment", width: 40, cell: func(v silenceView) any { return v.Comment }},
}

// entryOfHistory is the JSON form of something that happened.
type entryOfHistory struct {
	At       *jsontime.Time `json:"at"`
	Rule     string         `json:"rule"`
	Subject  string         `json:"subject"`
	Severity string         `json:"severity"`
	What     string         `json:"what"`
	Text     string         `json:"text,omitempty"`
	Messages []string       `json:"messages,omitempty"`
}

func viewHistory(e alert.Entry) entryOfHistory {
	return entryOfHistory{At: jsontime.At(e.At), Rule: e.Rule, Subject: e.Subject, Severity: string(e.Severity),
		What: e.What, Text: e.Text, Messages: e.Messages}
}

var historyColumns = []column[entryOfHistory]{
	{title: "at", cell: func(v entryOfHistory) any { return textOf(v.At) }},
	{title: "what", cell: func(v entryOfHistory) any { return v.What }},
	{title: "rule", width: 40, cell: func(v entryOfHistory) any { return v.Rule }},
	{title: "subject", width: 40, cell: func(v entryOfHistory) any { return v.Subject }},
	{title: "severity", cell: func(v entryOfHistory) any { return v.Severity }},
	{title: "text", width: 60, cell: func(v entryOfHistory) any { return v.Text }},
}

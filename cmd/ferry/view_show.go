package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/internal/letterjson"
)

// field is one line of what people read about a single thing.
type field struct{ name, value string }

// fields prints the fields that have a value, one on each line.
func (p process) fields(fields ...field) error {
	for _, f := range fields {
		if f.value == "" {
			continue
		}
		if err := p.sayf("  %s  %s", fit(f.name, 12), f.value); err != nil {
			return err
		}
	}
	return nil
}

// block prints text of many lines. Each is escaped by itself.
func (p process) block(title, text string) error {
	if text == "" {
		return nil
	}
	if err := p.sayf("  %s", title); err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		if err := p.sayf("    %s", strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// show prints everything about a message as one group sees it.
func (p process) show(v entryView) error {
	where := string(v.State)
	if v.Group != "" {
		where += " in group " + v.Group
	}
	if err := p.sayf("%s  %s", cmp.Or(v.ID, v.Ref), where); err != nil {
		return err
	}
	if err := p.fields(v.fields()...); err != nil {
		return err
	}
	if v.Dead != nil {
		if err := p.fields(deadFields(v.Dead)...); err != nil {
			return err
		}
		if err := p.block("stack", v.Dead.Stack); err != nil {
			return err
		}
	}
	for _, f := range v.History {
		line := fmt.Sprintf("%s by %s after %s: %s: %s", clock(f.At), f.Instance, shortly(f.Duration), f.Reason, f.Error)
		if err := p.fields(field{fmt.Sprintf("attempt %d", f.Attempt), line}); err != nil {
			return err
		}
	}
	return nil
}

func (v entryView) fields() []field {
	headers := make([]string, 0, len(v.Headers))
	for _, name := range slices.Sorted(maps.Keys(v.Headers)) {
		headers = append(headers, name+"="+v.Headers[name])
	}
	counts := ""
	if v.Attempt > 0 && v.Dead == nil {
		counts = fmt.Sprintf("%d, delivery %d", v.Attempt, v.Deliveries)
	}
	holder, settler := v.Instance, ""
	if v.State == driver.StateDone {
		holder, settler = "", v.Instance
	}
	return []field{
		{"topic", v.Topic}, {"ref", v.Ref}, {"key", v.Key}, {"priority", v.Priority}, {"type", v.ContentType},
		{"headers", strings.Join(headers, ", ")}, {"published", clock(v.PublishedAt)}, {"due", clock(v.DueAt)},
		{"expires", clock(v.ExpiresAt)},
		{"attempt", counts}, {"held by", holder}, {"settled", clock(v.SettledAt)}, {"took", v.took()}, {"by", settler},
		{"found", clock(v.FoundAt)}, {"problem", v.Problem}, {"body", v.preview()}, {"raw", string(v.RawBase64)},
	}
}

// took is how long the last handler ran, or nothing.
func (v entryView) took() string {
	if v.Took == 0 {
		return ""
	}
	return shortly(v.Took)
}

func deadFields(d *letterjson.Dead) []field {
	rounds, recovery := "", nextRetry(d)
	if d.RecoveryPriority > 0 {
		recovery += fmt.Sprintf(", priority %d of 10", d.RecoveryPriority)
	}
	if d.Rounds > 0 {
		rounds = fmt.Sprintf("replayed %d times, and died again", d.Rounds)
	}
	return []field{
		{"died", clock(d.DiedAt)}, {"reason", string(d.Reason)}, {"error", d.Error},
		{"tried", fmt.Sprintf("%d failed attempts, %d deliveries", d.Attempts, d.Deliveries)}, {"rounds", rounds},
		{"advice", string(d.Action)}, {"next retry", recovery},
	}
}

// clock returns a time as people read it, or nothing.
func clock(t *jsontime.Time) string {
	if t == nil {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}

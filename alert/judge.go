package alert

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry"
)

// judgement is one look at all rules and subjects.
type judgement struct {
	*round
	subjects [levels][]*subject
	quiet    []Silence
	acks     map[string]string
	now      time.Time
	seen     map[alertKey]bool // alerts whose subject is there
	// known are the alerts by rule and subject. Of most rules there are none, and then no subject is looked up.
	known map[string]map[string]*Alert
}

// byLevel sorts subjects once, so that a rule is not asked for those of other levels.
func byLevel(all []subject) (sorted [levels][]*subject) {
	for i := range all {
		sorted[all[i].level] = append(sorted[all[i].level], &all[i])
	}
	return sorted
}

// judge goes through rules and subjects. Of what is not known nothing changes; a subject that is gone is over, unless
// the look was not complete.
func (j *judgement) judge(ctx context.Context, rules *ruleSet, partial bool) error {
	j.known = byRule(j.alerts)
	byName := map[string]*compiled{}
	for _, rule := range rules.all {
		byName[rule.Name] = rule
		if err := j.rule(ctx, rule); err != nil {
			return err
		}
	}
	if partial {
		return nil
	}
	for key, a := range j.alerts {
		if j.seen[key] {
			continue
		}
		if err := j.settle(ctx, byName[a.Rule], a, j.now); !j.goesOn(ctx, a.Rule, a.Subject, err) {
			return err
		}
	}
	return nil
}

// rule evaluates one rule for each of its subjects.
func (j *judgement) rule(ctx context.Context, rule *compiled) error {
	if rule.Disabled || rule.program == nil {
		return nil
	}
	alerts := j.known[rule.Name]
	for _, s := range j.subjects[rule.level] {
		if !rule.wants(s) {
			continue
		}
		a := alerts[s.name]
		if a != nil {
			j.seen[a.key()] = true
		}
		holds, known := j.holds(ctx, rule, s)
		if !known || a == nil && !holds {
			continue
		}
		acked := j.acks[ackName(rule.Name, s.name)] != ""
		err := j.step(ctx, rule, s, holds, silenced(j.quiet, rule.Name, s.name), acked, j.now)
		if !j.goesOn(ctx, rule.Name, s.name, err) {
			return err
		}
		j.seen[alertKey{rule.Name, s.name}] = true
	}
	return nil
}

// goesOn reports whether an error of one alert leaves the others to be judged. One that the broker does not keep, for
// its name or its size or since there is no room, must not hide them.
func (j *judgement) goesOn(ctx context.Context, rule, subject string, err error) bool {
	if errors.Is(err, ferry.ErrInvalid) || errors.Is(err, ferry.ErrTooLarge) || errors.Is(err, ferry.ErrFull) {
		j.log.ErrorContext(ctx, "an alert cannot be kept, and nobody is told of it", "rule", rule, "subject", subject,
			"error", err)
		return true
	}
	return err == nil
}

// byRule sorts alerts by rule and subject.
func byRule(all map[alertKey]*Alert) map[string]map[string]*Alert {
	sorted := map[string]map[string]*Alert{}
	for key, a := range all {
		if sorted[key.rule] == nil {
			sorted[key.rule] = map[string]*Alert{}
		}
		sorted[key.rule][key.subject] = a
	}
	return sorted
}

// holds evaluates a condition. known says that all its figures are.
func (r *round) holds(ctx context.Context, rule *compiled, s *subject) (holds, known bool) {
	for _, name := range rule.uses {
		if _, ok := s.values[name]; !ok {
			return false, false
		}
	}
	s.values["threshold"] = rule.threshold
	out, err := r.vm.Run(rule.program, s.values)
	if err != nil {
		r.log.WarnContext(ctx, "a rule cannot be evaluated", "rule", rule.Name, "subject", s.name, "error", err)
		return false, false
	}
	holds, known = out.(bool)
	return holds, known
}

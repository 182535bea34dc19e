package main

import (
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// jsonForm returns how a thing of another package stands in JSON: what is stored has durations in nanoseconds and times
// to the last digit, and what people read has one form of each. A field here stands before the one of the same name
// inside.
func jsonForm(v any) any {
	switch v := v.(type) {
	case guard.Change:
		return changeForm{Change: v, At: jsontime.At(v.At), For: jsontime.Duration(v.For), Rule: ruleOf(v.Rule)}
	case guard.SharedRule:
		return sharedRuleForm{v, jsontime.At(v.At), ruleOf(v.Rule)}
	case guard.BreakerStatus:
		return breakerForm{v, jsontime.At(v.Since), jsontime.At(v.Seen)}
	case guard.Status:
		f := statusForm{Status: v, Rule: ruleOf(v.Rule)}
		if o := v.Override; o != nil {
			f.Override = &overrideForm{ruleOf(o.Rule), jsontime.At(o.Until)}
		}
		if b := v.Block; b != nil {
			f.Block = &blockForm{*b, jsontime.At(b.Until)}
		}
		return f
	}
	return v
}

type changeForm struct {
	guard.Change
	At   *jsontime.Time    `json:"at"`
	For  jsontime.Duration `json:"for,omitempty"`
	Rule *ruleForm         `json:"rule,omitempty"`
}

type sharedRuleForm struct {
	guard.SharedRule
	At   *jsontime.Time `json:"at"`
	Rule *ruleForm      `json:"rule"`
}

type breakerForm struct {
	guard.BreakerStatus
	Since *jsontime.Time `json:"since,omitempty"`
	Seen  *jsontime.Time `json:"seen,omitempty"`
}

type statusForm struct {
	guard.Status
	Rule     *ruleForm     `json:"rule,omitempty"`
	Override *overrideForm `json:"override,omitempty"`
	Block    *blockForm    `json:"block,omitempty"`
}

type overrideForm struct {
	Rule  *ruleForm      `json:"rule"`
	Until *jsontime.Time `json:"until"`
}

type blockForm struct {
	guard.Block
	Until *jsontime.Time `json:"until,omitempty"`
}

type ruleForm struct {
	guard.Rule
	Window  jsontime.Duration `json:"window,omitempty"`
	Penalty *penaltyForm      `json:"penalty,omitempty"`
}

type penaltyForm struct {
	guard.Penalty
	Block   jsontime.Duration `json:"block,omitempty"`
	Max     jsontime.Duration `json:"max,omitempty"`
	History jsontime.Duration `json:"history,omitempty"`
}

// ruleOf returns nil for none.
func ruleOf(r guard.Rule) *ruleForm {
	if r == (guard.Rule{}) {
		return nil
	}
	f := &ruleForm{Rule: r, Window: jsontime.Duration(r.Window)}
	if p := r.Penalty; p != (guard.Penalty{}) {
		f.Penalty = &penaltyForm{p, jsontime.Duration(p.Block), jsontime.Duration(p.Max), jsontime.Duration(p.History)}
	}
	return f
}

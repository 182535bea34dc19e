package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/operation"
)

// operationView is the JSON form of an operation.
type operationView struct {
	Operation  string           `json:"operation"`
	Kind       string           `json:"kind"`
	Args       json.RawMessage  `json:"args,omitempty"`
	State      string           `json:"state"`
	Cancelling bool             `json:"cancelling,omitempty"`
	DryRun     bool             `json:"dry_run,omitempty"`
	By         string           `json:"by,omitempty"`
	Worker     string           `json:"worker,omitempty"`
	Takes      int              `json:"takes"`
	Submitted  *jsontime.Time   `json:"submitted,omitempty"`
	Started    *jsontime.Time   `json:"started,omitempty"`
	Ended      *jsontime.Time   `json:"ended,omitempty"`
	Phase      string           `json:"phase,omitempty"`
	Scanned    int64            `json:"scanned"`
	Total      int64            `json:"total"`
	Done       int64            `json:"done"`
	Skipped    int64            `json:"skipped"`
	Why        map[string]int64 `json:"why,omitempty"`
	Problem    string           `json:"problem,omitempty"`
}

func viewOperation(op operation.Operation) operationView {
	return operationView{Operation: op.ID, Kind: op.Kind, Args: op.Args, State: string(op.State),
		Cancelling: op.Cancelling, DryRun: op.DryRun, By: op.By, Worker: op.Worker, Takes: op.Takes,
		Submitted: jsontime.At(op.Submitted), Started: jsontime.At(op.Started), Ended: jsontime.At(op.Ended), Phase: op.Phase,
		Scanned: op.Scanned, Total: op.Total, Done: op.Done,
		Skipped: op.Skipped, Why: op.Why, Problem: op.Problem}
}

var operationColumns = []column[operationView]{
	{title: "id", width: 64, cell: func(v operationView) any { return v.Operation }},
	{title: "state", cell: func(v operationView) any { return v.State }},
	{title: "kind", width: 24, cell: func(v operationView) any { return v.Kind }},
	{title: "args", width: 50, cell: func(v operationView) any { return string(v.Args) }},
	{title: "submitted", cell: func(v operationView) any { return clock(v.Submitted) }},
	{title: "scanned", number: true, cell: func(v operationView) any { return v.Scanned }},
	{title: "of", number: true, cell: func(v operationView) any { return v.Total }},
	{title: "done", number: true, cell: func(v operationView) any { return v.Done }},
	{title: "skipped", number: true, cell: func(v operationView) any { return v.Skipped }},
	{title: "worker", width: 30, cell: func(v operationView) any { return v.Worker }},
	{title: "problem", width: 60, cell: func(v operationView) any { return v.Problem }},
}

// progress is one line about how far it is.
func (v operationView) progress() string {
	state := v.State
	if v.Cancelling {
		state = "cancelling"
	}
	line := fmt.Sprintf("%s%s  %s done, %s skipped", bar(v.Scanned, v.Total), state, grouped(int(v.Done)),
		grouped(int(v.Skipped)))
	if v.Phase != "" && state == string(operation.Running) {
		line += ", " + v.Phase
	}
	if v.Problem != "" {
		line += ": " + v.Problem
	}
	return line
}

// showOperation prints everything about an operation.
func (s session) showOperation(v operationView) error {
	if err := s.sayf("%s  %s", v.Operation, v.progress()); err != nil {
		return err
	}
	if err := s.fields(field{"kind", v.Kind}, field{"arguments", string(v.Args)}, field{"by", v.By},
		field{"submitted", clock(v.Submitted)}, field{"started", clock(v.Started)},
		field{"ended", clock(v.Ended)}, field{"worker", v.Worker}, field{"taken", fmt.Sprintf("%d times", v.Takes)},
		field{"scanned", fmt.Sprintf("%d of %d", v.Scanned, v.Total)}); err != nil {
		return err
	}
	for _, why := range slices.Sorted(maps.Keys(v.Why)) {
		if err := s.sayf("  %d skipped: %s", v.Why[why], why); err != nil {
			return err
		}
	}
	return nil
}

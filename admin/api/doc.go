// Package api has what goes over the wire of the admin API: the answers, the requests and the problems, as plain types
// with their JSON names. Package admin serves them, and package admin/client reads them; neither has forms of its own.
package api

import "github.com/ferrymq/ferry/internal/jsontime"

// Base is the path below which the API answers.
const Base = "/api/v1"

type (
	// Duration stands in JSON as a text: "1m30s".
	Duration = jsontime.Duration
	// Time stands in JSON as RFC 3339 in UTC, to the millisecond.
	Time = jsontime.Time
)

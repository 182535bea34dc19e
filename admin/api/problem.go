package api

// Problem is the answer to a request that failed: problem details of RFC 9457.
type Problem struct {
	Type   string `json:"type" doc:"about:blank: the code says what kind of problem it is"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code" doc:"Stable name of the kind of problem, for programs"`
	Detail string `json:"detail" doc:"What happened"`
	Hint   string `json:"hint,omitempty" doc:"What to do next"`
	// RequestID finds the request in the log of the server.
	RequestID string  `json:"request_id" doc:"Under which the request stands in the log of the server"`
	Fields    []Field `json:"fields,omitempty" doc:"Which parts of the request are wrong"`
}

// Field is one part of a request that is wrong.
type Field struct {
	Location string `json:"location" doc:"Where: body.limit, query.cursor, path.topic"`
	Message  string `json:"message"`
}

// Codes of problems.
const (
	CodeInvalid     = "invalid"         // 400: the input is wrong
	CodeMalformed   = "invalid_request" // 422: the input does not have the form of the OpenAPI document
	CodeNobody      = "unauthenticated" // 401: nobody is logged in
	CodeForbidden   = "forbidden"       // 403: whoever asks may not do it
	CodeNotFound    = "not_found"       // 404
	CodeMethod      = "method"          // 405: the path answers to other methods
	CodeConflict    = "conflict"        // 409: what exists is in a state that forbids it
	CodeTooLarge    = "too_large"       // 413
	CodeMediaType   = "media_type"      // 415: the body is in another form than JSON
	CodeFull        = "full"            // 429: a bound was reached
	CodeInternal    = "internal"        // 500: a defect of the server; the log has it under the request id
	CodeUnsupported = "unsupported"     // 501: this broker cannot do it
	CodeUnavailable = "unavailable"     // 503: the broker was not reached, and nothing changed
	CodeUnknown     = "unknown"         // 504: it is not known whether anything changed
)

// Error returns what happened, and the hint.
func (p *Problem) Error() string {
	if p.Hint == "" {
		return p.Detail
	}
	return p.Detail + " (hint: " + p.Hint + ")"
}

// GetStatus returns the status of the answer.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is that of problem details.
func (*Problem) ContentType(string) string { return "application/problem+json" }

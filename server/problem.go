package server

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
)

// Problem is what every answer that is an error says: RFC 9457, with a code for programs and a hint for people.
type Problem struct {
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail,omitempty"`
	Code      string `json:"code"`
	Hint      string `json:"hint,omitempty"`
	RequestID string `json:"request_id,omitempty"`
}

// refuse answers with a problem. Its texts are those of the server itself: nothing of the request, the broker or an
// error is repeated in them.
func refuse(w http.ResponseWriter, r *http.Request, status int, code, detail, hint string) {
	p := Problem{Title: http.StatusText(status), Status: status, Detail: detail, Code: code, Hint: hint,
		RequestID: auth.RequestID(r.Context())}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p) // who has gone is not told
}

// refuseError answers with the problem of an error of package auth. Only what the server says itself about wrong
// credentials is told; an error of the broker stands in the log.
func (s *Server) refuseError(w http.ResponseWriter, r *http.Request, err error) {
	var known *driver.Error
	if errors.Is(err, driver.ErrRefused) && errors.As(err, &known) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, r, http.StatusUnauthorized, "unauthenticated", known.Text, known.Hint)
		return
	}
	s.o.Logger.WarnContext(r.Context(), "credentials cannot be checked", "error", err,
		"request", auth.RequestID(r.Context()))
	w.Header().Set("Retry-After", "1")
	refuse(w, r, http.StatusServiceUnavailable, "unavailable", "the broker does not answer",
		"try again; if it stays so, look at the log of the server")
}

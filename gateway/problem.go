package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
)

const problemType = "application/problem+json"

// problem is what every answer that is an error says: RFC 9457, with a code for programs and a hint for people.
type problem struct {
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail,omitempty"`
	Code      string `json:"code" doc:"Stable name of the kind of problem, for programs"`
	Hint      string `json:"hint,omitempty" doc:"What to do next"`
	RequestID string `json:"request_id,omitempty" doc:"Under which the request stands in the log of the server"`
}

// errElsewhere is the kind of an error about a lease that another gateway holds.
var errElsewhere = errors.New("lease elsewhere")

// codes are those of the kinds of errors, in the order of statuses. They never change.
var codes = []struct {
	kind error
	code string
}{
	{errElsewhere, "lease_elsewhere"},
	{driver.ErrInvalid, "invalid"},
	{driver.ErrRefused, "refused"},
	{driver.ErrNotFound, "not_found"},
	{driver.ErrLeaseLost, "lease_lost"},
	{driver.ErrConflict, "conflict"},
	{driver.ErrTooLarge, "too_large"},
	{driver.ErrFull, "full"},
	{driver.ErrUnsupported, "unsupported"},
	{driver.ErrNotApplied, "not_applied"},
	{driver.ErrClosed, "not_applied"},
	{driver.ErrUnknown, "unknown"},
}

// problemOf is the problem of an error. Of errors that are not Ferry's own the text is left out: it may tell of the
// inside.
func problemOf(ctx context.Context, err error) *problem {
	status := statusOf(err)
	p := &problem{Title: http.StatusText(status), Status: status, Code: "internal", RequestID: auth.RequestID(ctx)}
	for _, c := range codes {
		if errors.Is(err, c.kind) {
			p.Code = c.code
			break
		}
	}
	var whole *driver.Error
	if errors.As(unnamed(ctx, err), &whole) {
		p.Detail, p.Hint = whole.Text, whole.Hint
	}
	return p
}

// unnamed takes the names of topics out of an error for who may not see them all.
func unnamed(ctx context.Context, err error) error {
	var whole *driver.Error
	if !errors.As(err, &whole) || !whole.NamesTopics() || may(ctx, auth.View, "") == nil {
		return err
	}
	return driver.NewError(whole.Kind, whole.Text, "publish to it, or have it made", nil)
}

// refuse answers with the problem of an error, and when to come again if that helps.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(r.Context(), err)
	if p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // who has gone is not told
}

// answer answers with JSON.
func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // who has gone is not told
}

func invalid(text, hint string, cause error) error {
	return driver.NewError(driver.ErrInvalid, text, hint, cause)
}

package wecom

import (
	"errors"
	"fmt"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/safehttp"
)

// Codes of the vendor that decide something here.
const (
	CodeBusy          = -1
	CodeWrongSecret   = 40001 // also of a token that another secret got
	CodeWrongToken    = 40014
	CodeExpiredToken  = 42001
	CodeLimited       = 45009
	CodeWrongAccount  = 95000
	CodeReplyCount    = 95001 // five replies to a message of the customer
	CodeReplyTime     = 95002 // 48 hours after it
	CodeWrongMsgToken = 95007 // the token of a callback, which lasts ten minutes
	CodeState         = 95018 // the session's state does not allow it
)

// APIError is an answer of the vendor that is no success.
type APIError struct {
	Call string // "kf/sync_msg"
	Code int
	Text string
}

// Error names the call and what it was answered.
func (e *APIError) Error() string { return fmt.Sprintf("%s answered %d: %s", e.Call, e.Code, e.Text) }

// Code is the vendor's code in an error, or 0.
func Code(err error) int {
	var answer *APIError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return 0
}

// refused makes an error of the vendor's answer: ErrFull where fewer calls would pass, ErrNotApplied where the same
// call may pass later, and ErrRefused otherwise.
func refused(call string, code int, text string, secrets ...string) error {
	kind, hint := ferry.ErrRefused, "look the code up in the vendor's list of return codes"
	switch code {
	case CodeBusy:
		kind, hint = ferry.ErrNotApplied, "try again"
	case CodeLimited:
		kind, hint = ferry.ErrFull, "call less often; pulls without a callback's token are allowed rarely"
	case CodeWrongSecret, CodeWrongToken, CodeExpiredToken:
		hint = "see that corp id and secret belong together, and that this address is one of the trusted ones"
	case CodeWrongAccount:
		hint = "see that the open_kfid exists and that the application may use it"
	case CodeReplyCount, CodeReplyTime:
		hint = "wait until the customer writes again: five replies are allowed within 48 hours"
	case CodeState:
		hint = "only a session that is new or with the assistant can be written to: see Client.State"
	}
	cause := &APIError{Call: call, Code: code, Text: safehttp.Hide(text, secrets...)}
	return driver.NewError(kind, "WeCom refused", hint, cause)
}

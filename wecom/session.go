package wecom

import "context"

// State of a session: who has the customer.
type State int

// States.
const (
	StateNew       State = 0 // nobody yet
	StateAssistant State = 1 // a program: it may Send
	StateQueue     State = 2 // waits for a person
	StateServicer  State = 3 // a person
	StateEnded     State = 4
)

// State returns the state of a customer's session, and the person who has it, if one has.
func (c *Client) State(ctx context.Context, account, user string) (s State, servicer string, err error) {
	var out struct {
		State    State  `json:"service_state"`
		Servicer string `json:"servicer_userid"`
	}
	err = c.call(ctx, "kf/service_state/get", map[string]any{"open_kfid": account, "external_userid": user}, &out)
	return out.State, out.Servicer, err
}

// Transfer changes the state of a session: to the assistant, to the queue, to a person (servicer), or to its end. The
// code is for SendOnEvent, a last word to the customer; it may be empty.
func (c *Client) Transfer(ctx context.Context, account, user string, to State, servicer string) (code string,
	err error) {
	in := map[string]any{"open_kfid": account, "external_userid": user, "service_state": to}
	if servicer != "" {
		in["servicer_userid"] = servicer
	}
	var out struct {
		Code string `json:"msg_code"`
	}
	err = c.call(ctx, "kf/service_state/trans", in, &out)
	return out.Code, err
}

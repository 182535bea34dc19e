package auth

import (
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// Scope is one thing that somebody may be allowed to do.
type Scope string

// The scopes.
const (
	Publish Scope = "publish" // messages to a topic
	Consume Scope = "consume" // receive and settle messages
	View    Scope = "view"    // everything but the bodies of messages
	Operate Scope = "operate" // change what happens to messages: pause, purge, replay, limits, schedules
	Payload Scope = "payload" // the bodies of messages
	Metrics Scope = "metrics" // figures for monitoring
	Admin   Scope = "admin"   // users, tokens, actions
)

// Scopes returns all scopes.
func Scopes() []Scope { return []Scope{Publish, Consume, View, Operate, Payload, Metrics, Admin} }

// CheckScopes says which of the scopes is none, or nil.
func CheckScopes(scopes []Scope) error {
	for _, s := range scopes {
		if !slices.Contains(Scopes(), s) {
			return driver.NewError(driver.ErrInvalid, fmt.Sprintf("%.40q is no scope", s),
				fmt.Sprintf("use some of %v", Scopes()), nil)
		}
	}
	return nil
}

// Role is a set of scopes that is given to people. Each holds what the one before it holds.
type Role string

// The roles.
const (
	Viewer        Role = "viewer"   // view, metrics
	Operator      Role = "operator" // and operate, payload, publish, consume
	Administrator Role = "admin"    // and admin
)

// Roles returns all roles, the least first.
func Roles() []Role { return []Role{Viewer, Operator, Administrator} }

// CheckRole says that a role is none, or nil.
func CheckRole(r Role) error {
	if slices.Contains(Roles(), r) {
		return nil
	}
	return driver.NewError(driver.ErrInvalid, fmt.Sprintf("%.40q is no role", r), fmt.Sprintf("use one of %v", Roles()),
		nil)
}

// least is the first role that holds each scope.
var least = map[Scope]Role{
	View: Viewer, Metrics: Viewer,
	Operate: Operator, Payload: Operator, Publish: Operator, Consume: Operator,
	Admin: Administrator,
}

// Holds reports whether the role holds a scope. A role or scope that does not exist holds nothing and is held by none.
func (r Role) Holds(s Scope) bool {
	needed := slices.Index(Roles(), least[s])
	return needed >= 0 && slices.Index(Roles(), r) >= needed
}

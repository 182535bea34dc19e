// Package auth knows who asks, what they may do, and what they did.
//
// An [Identity] is who asks: a user, a token, somebody who logged in with OIDC. It holds grants, each a [Role] on
// topics, and it is asked one question:
//
//	if !auth.From(ctx).May(auth.Operate, "orders") { ... }
//
// [Users] log in with passwords and go on with [Sessions]; programs show [Tokens]. All of them are named values of the
// broker, so that every server of a broker knows them, and none holds a password, token or session id in clear.
//
// What operators do is kept as [Action] values in the broker, each with the hash of the one before it ([Actions]).
package auth

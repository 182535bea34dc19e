package auth

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// Grant is a role on topics.
type Grant struct {
	Role Role `json:"role" yaml:"role"`
	// Topics are patterns: names in which * stands for any text, a dot included. None: every topic, and what belongs to
	// no topic.
	Topics []string `json:"topics,omitempty" yaml:"topics"`
}

// Kinds of identities.
const (
	KindUser  = "user"  // with a password
	KindOIDC  = "oidc"  // somebody whom an identity provider vouches for
	KindToken = "token" // a program
	KindLocal = "local" // whoever used the one-time URL of a server on this machine
)

// Identity is who asks. The nil Identity is nobody, and may do nothing.
type Identity struct {
	Name   string
	Kind   string
	Grants []Grant
	// Scopes bound what the grants allow, for a token: nil bounds nothing, while one that is empty and not nil leaves
	// nothing.
	Scopes []Scope
}

// May reports whether the identity may do something with a topic. The empty topic stands for what belongs to no topic,
// members or schedules for example: it takes a grant on every topic.
func (i *Identity) May(s Scope, topic string) bool {
	return i.some(s, func(g Grant) bool { return g.covers(topic) })
}

// MayAny reports whether there can be a topic with which the identity may do something. Who lists topics asks this
// once, and then May for each.
func (i *Identity) MayAny(s Scope) bool { return i.some(s, func(Grant) bool { return true }) }

func (i *Identity) some(s Scope, fits func(Grant) bool) bool {
	if i == nil || i.Scopes != nil && !slices.Contains(i.Scopes, s) {
		return false
	}
	return slices.ContainsFunc(i.Grants, func(g Grant) bool { return g.Role.Holds(s) && fits(g) })
}

// String returns kind and name, "user ann" for example.
func (i *Identity) String() string {
	if i == nil {
		return "nobody"
	}
	return i.Kind + " " + i.Name
}

// everything is the pattern of every topic.
const everything = "*"

func (g Grant) covers(topic string) bool {
	if len(g.Topics) == 0 || slices.Contains(g.Topics, everything) {
		return true
	}
	return topic != "" && slices.ContainsFunc(g.Topics, func(pattern string) bool {
		fits, err := path.Match(pattern, topic) // a topic has no slash, so that * stands for any text
		return err == nil && fits
	})
}

// Check says what is wrong with a grant, or nil.
func (g Grant) Check() error {
	if err := CheckRole(g.Role); err != nil {
		return err
	}
	return CheckPatterns(g.Topics)
}

// CheckPatterns says what is wrong with patterns of topics, or nil.
func CheckPatterns(patterns []string) error {
	for _, p := range patterns {
		if p == everything {
			continue
		}
		if err := driver.CheckName("topic", strings.ReplaceAll(p, "*", "x")); err != nil {
			return driver.NewError(driver.ErrInvalid, fmt.Sprintf("%.80q is no pattern of topics", p),
				"write the name of a topic, with * for any text: orders.*", nil)
		}
	}
	return nil
}

type (
	identityKey  struct{}
	requestIDKey struct{}
)

// With returns a context in which From finds the identity.
func With(ctx context.Context, i *Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, i)
}

// From returns who asks, or nil: nobody, who may do nothing.
func From(ctx context.Context) *Identity {
	i, _ := ctx.Value(identityKey{}).(*Identity)
	return i
}

// WithRequestID returns a context in which RequestID finds the id of a request.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the id under which a request stands in the log of the server, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

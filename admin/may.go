package admin

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
)

// authorize lets a request pass if whoever asks has the scope of the route for the topic that path or query name. Of
// topics in a body mayBody asks, once it is read.
func (a *API) authorize(r route) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		who := auth.From(c.Context())
		if who == nil {
			a.write(c, &api.Problem{Status: http.StatusUnauthorized, Code: api.CodeNobody,
				Detail: "nobody is logged in", Hint: "log in, or send a token: Authorization: Bearer ..."})
			return
		}
		if !r.allows(who, c) {
			a.deny(c.Context(), r, topicOf(r, c))
			a.write(c, forbidden(r.scope, topicOf(r, c)))
			return
		}
		next(c)
	}
}

func (r route) allows(who *auth.Identity, c huma.Context) bool {
	if r.topic == inEach || r.topic == inBody {
		return who.MayAny(r.scope)
	}
	return who.May(r.scope, topicOf(r, c))
}

func topicOf(r route, c huma.Context) string {
	switch r.topic {
	case inPath:
		return c.Param("topic")
	case inQuery:
		return c.Query("topic")
	}
	return ""
}

// mayBody asks for the topics that a body names.
func (a *API) mayBody(ctx context.Context, r route, in any) error {
	t, ok := in.(topical)
	if r.topic != inBody || !ok {
		return nil
	}
	for _, topic := range t.topics() {
		if err := may(ctx, r.scope, topic); err != nil {
			a.deny(ctx, r, topic)
			return err
		}
	}
	return nil
}

// may returns a problem unless whoever asks has a scope for a topic.
func may(ctx context.Context, scope auth.Scope, topic string) error {
	if auth.From(ctx).May(scope, topic) {
		return nil
	}
	return forbidden(scope, topic)
}

func forbidden(scope auth.Scope, topic string) *api.Problem {
	on := "what belongs to no single topic"
	if topic != "" {
		on = fmt.Sprintf("topic %.80q", topic)
	}
	return &api.Problem{Status: http.StatusForbidden, Code: api.CodeForbidden,
		Detail: fmt.Sprintf("this takes the scope %s for %s", scope, on),
		Hint:   askForIt}
}

// askForIt is the hint for who lacks a scope.
const askForIt = "ask an administrator for a role or a token that has it"

// deny records that somebody was not allowed to change something.
func (a *API) deny(ctx context.Context, r route, topic string) {
	if r.acts && a.o.Actions != nil {
		a.record(ctx, auth.Action{What: r.id, Topic: topic, Outcome: auth.Denied}, nil)
	}
}

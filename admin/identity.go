package admin

import (
	"context"
	"slices"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
)

// showIdentity tells who asks what they may do, so that a client offers nothing that would be refused.
func (a *API) showIdentity(ctx context.Context, _ *struct{}) (api.Identity, error) {
	who := auth.From(ctx)
	out := api.Identity{Name: who.Name, Kind: who.Kind, Scopes: []api.ScopeOn{}}
	for _, s := range auth.Scopes() {
		if who.MayAny(s) {
			out.Scopes = append(out.Scopes, api.ScopeOn{Scope: string(s), Topics: patternsOf(who, s)})
		}
	}
	return out, nil
}

// patternsOf returns the patterns of the topics on which somebody has a scope. None: every topic, and what belongs to
// no topic.
func patternsOf(who *auth.Identity, s auth.Scope) []string {
	patterns := []string{}
	for _, g := range who.Grants {
		if !g.Role.Holds(s) {
			continue
		}
		if len(g.Topics) == 0 {
			return []string{}
		}
		patterns = append(patterns, g.Topics...)
	}
	slices.Sort(patterns)
	return slices.Compact(patterns)
}

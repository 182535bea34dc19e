package api

// Identity is who asks, and what they may do.
type Identity struct {
	Name   string    `json:"name"`
	Kind   string    `json:"kind" enum:"user,oidc,token,local"`
	Scopes []ScopeOn `json:"scopes"`
}

// ScopeOn is a scope that somebody has, and on which topics.
type ScopeOn struct {
	Scope  string   `json:"scope" enum:"publish,consume,view,operate,payload,metrics,admin"`
	Topics []string `json:"topics" doc:"Patterns; none is every topic, and what belongs to no topic"`
}

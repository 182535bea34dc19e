package api

// TokenPage is a page of the tokens that are good.
type TokenPage struct {
	Tokens []Token `json:"tokens"`
	Next   string  `json:"next,omitempty"`
}

// Token is a token without its text, which nobody can learn later.
type Token struct {
	ID      string   `json:"id"`
	Name    string   `json:"name" doc:"What it is for"`
	Scopes  []string `json:"scopes"`
	Topics  []string `json:"topics" doc:"Patterns; none is every topic"`
	By      string   `json:"by,omitempty" doc:"Who made it"`
	Created *Time    `json:"created,omitempty"`
	Expires *Time    `json:"expires,omitempty"`
}

// CreateToken asks for a token.
type CreateToken struct {
	Name   string   `json:"name" maxLength:"128"`
	Scopes []string `json:"scopes" minItems:"1" maxItems:"16" doc:"Some of publish, consume, view, operate, payload, metrics, admin"`
	Topics []string `json:"topics,omitempty" maxItems:"100" doc:"Patterns; none is every topic"`
	TTL    Duration `json:"ttl,omitempty" doc:"How long it is good; 90 days by default"`
}

// CreatedToken is a new token with its text, which is told this once.
type CreatedToken struct {
	Token
	Text string `json:"token" doc:"Send it as Authorization: Bearer"`
}

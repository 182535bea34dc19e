package api

// MaskList is everything that is hidden of messages, from everybody.
type MaskList struct {
	Masks []Mask `json:"masks"`
}

// Mask is what is hidden of the messages of some topics.
type Mask struct {
	Topics  []string `json:"topics,omitempty" doc:"Patterns; none is every topic"`
	Headers []string `json:"headers,omitempty" doc:"Names of headers whose values are hidden"`
	Fields  []string `json:"fields,omitempty" doc:"Names in JSON bodies whose values are hidden, at any depth"`
}

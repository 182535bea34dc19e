package api

// UserPage is a page of the users.
type UserPage struct {
	Users []User `json:"users"`
	Next  string `json:"next,omitempty"`
}

// User is somebody who logs in with a password, which nobody can learn.
type User struct {
	Name     string  `json:"name"`
	Grants   []Grant `json:"grants"`
	Disabled bool    `json:"disabled" doc:"Cannot log in"`
	Set      *Time   `json:"password_set,omitempty"`
}

// Grant is a role on topics.
type Grant struct {
	Role   string   `json:"role" enum:"viewer,operator,admin"`
	Topics []string `json:"topics,omitempty" maxItems:"100" doc:"Patterns; none is every topic"`
}

// SetUser makes a user, or changes one. What is left out stays as it is; a new user needs both.
type SetUser struct {
	Grants   []Grant `json:"grants,omitempty" maxItems:"100"`
	Password string  `json:"password,omitempty" maxLength:"1024" doc:"Another one ends the sessions of the user"`
}

package api

// WeComAccounts are the accounts of customer service of WeCom, and what they share.
type WeComAccounts struct {
	Accounts     []WeComAccount `json:"accounts"`
	LastCallback *Time          `json:"last_callback,omitempty" doc:"When this server last stored a callback"`
	TokenUntil   *Time          `json:"token_until,omitempty" doc:"When the access token is asked for anew; absent while there is none"`
	Lag          WeComLag       `json:"lag"`
}

// WeComAccount is one account.
type WeComAccount struct {
	Account      string   `json:"account" doc:"Its open_kfid"`
	Pulled       *Time    `json:"pulled,omitempty" doc:"When a pull of it last succeeded, in any process; absent if none did"`
	CursorAge    Duration `json:"cursor_age,omitempty" doc:"How long ago that was"`
	LastCallback *Time    `json:"last_callback,omitempty" doc:"When this server last stored a callback of it"`
	Problem      string   `json:"problem,omitempty" doc:"Why its last pull by this server failed"`
}

// WeComLag is how much waits.
type WeComLag struct {
	Pulls    int64            `json:"pulls" doc:"Pull jobs"`
	Messages map[string]int64 `json:"messages" doc:"Messages, by the group that has not handled them"`
}

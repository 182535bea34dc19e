package wecom

// Groups of users. Each has a limit of its own: see Protection.
const (
	GroupNormal     = "normal"
	GroupVIP        = "vip"
	GroupSuspicious = "suspicious"
	GroupWhitelist  = "whitelist" // is not limited
)

// listedGroups are those that users are put into. Everybody else is normal.
var listedGroups = []string{GroupVIP, GroupSuspicious, GroupWhitelist}

// groupsOf returns who is in which group. Of a user in several, the first of listedGroups counts.
func groupsOf(users map[string][]string) func(user string) string {
	group := map[string]string{}
	for _, name := range listedGroups {
		for _, user := range users[name] {
			if group[user] == "" {
				group[user] = name
			}
		}
	}
	return func(user string) string {
		if name := group[user]; name != "" {
			return name
		}
		return GroupNormal
	}
}

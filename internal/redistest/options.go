package redistest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/internal/netns"
)

// Options describe a server, or every data node of a set. The zero value is a plain Redis 7 without persistence.
type Options struct {
	// Version is one of Versions. Defaults to "redis-7.0".
	Version string
	// AOF is when the append-only file is synced: "always" or "everysec". Defaults to no persistence at all.
	AOF string
	// MaxMemory is the memory limit, such as "64mb"; nothing is evicted. Defaults to none.
	MaxMemory string
	// Password is that of the default user. Defaults to none.
	Password string
	// ACL adds users by lines such as "user app on >secret ~app:* +@all". The default user stays as Password says.
	ACL []string
	// TLS serves TLS only, with a certificate of a new authority; see Server.TLSConfig. Only redis-7.0 is built with it.
	TLS bool
	// ClientCerts refuses TLS clients without a certificate of that authority.
	ClientCerts bool
	// Network gives each server an address of its own, for partitions. Defaults to the loopback address for all. No TLS.
	Network *Network
	// Clock is the wall clock of the server. Defaults to that of the machine.
	Clock *Clock
	// Steady says that nobody takes over unless told to, however long the machine stalls: for sets whose fail-over is not
	// what is tested. Otherwise they do within two seconds.
	Steady bool
	// Config adds lines to the configuration file, such as "maxclients 100".
	Config []string
}

// failAfter is for how many milliseconds a node of a set is silent before others take over.
func (o Options) failAfter() string {
	after := time.Second
	if o.Steady {
		after = time.Hour
	}
	return strconv.FormatInt(after.Milliseconds(), 10)
}

// dataNode returns the configuration of a server that keeps data.
func (o Options) dataNode(v version) []string {
	lines := []string{`save ""`, "repl-diskless-sync yes", "repl-diskless-sync-delay 0"}
	if v.debugOption {
		lines = append(lines, "enable-debug-command yes")
	}
	if o.AOF != "" {
		lines = append(lines, "appendonly yes", "appendfsync "+o.AOF)
	}
	if o.MaxMemory != "" {
		lines = append(lines, "maxmemory "+o.MaxMemory, "maxmemory-policy noeviction")
	}
	switch {
	case len(o.ACL) > 0:
		lines = append(lines, "aclfile "+aclFile)
	case o.Password != "":
		lines = append(lines, "requirepass "+quote(o.Password))
	}
	if o.Password != "" {
		lines = append(lines, "masterauth "+quote(o.Password))
	}
	return append(lines, o.Config...)
}

// aclFile is relative to the server's directory.
const aclFile = "users.acl"

// aclLines returns the file of users: it replaces what requirepass says, so the default user is in it.
func (o Options) aclLines() []string {
	access := "nopass"
	if o.Password != "" {
		access = ">" + o.Password
	}
	return append([]string{"user default on " + access + " ~* &* +@all"}, o.ACL...)
}

// network returns what every kind of node needs to listen in its directory.
func (o Options) network(dir string, place *netns.Host, port int, c *authority) []string {
	lines := []string{"bind " + place.IP(), "daemonize no", "dir " + quote(dir)}
	if place != nil {
		lines = append(lines, "protected-mode no") // nobody else reaches the address
	}
	if c == nil {
		return append(lines, fmt.Sprintf("port %d", port))
	}
	clients := "optional"
	if o.ClientCerts {
		clients = "yes"
	}
	return append(lines, "port 0", fmt.Sprintf("tls-port %d", port), "tls-replication yes", "tls-auth-clients "+clients,
		"tls-ca-cert-file "+quote(c.caFile), "tls-cert-file "+quote(c.certFile), "tls-key-file "+quote(c.keyFile))
}

// quote makes one argument of a configuration file.
func quote(s string) string {
	return strconv.Quote(s)
}

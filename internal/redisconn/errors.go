package redisconn

import (
	"errors"
	"net"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// refusals are replies that say that a command was not applied, and what to do about it.
var refusals = []struct{ prefix, text, hint string }{
	{"OOM", "the server is out of memory", "let consumers catch up, or raise maxmemory"},
	{"MOVED", "the cluster is moving the key", "try again"},
	{"ASK", "the cluster is moving the key", "try again"},
	{"TRYAGAIN", "the cluster is moving the key", "try again"},
	{"CLUSTERDOWN", "the cluster is down", "look at CLUSTER INFO; it answers again when every slot is served"},
	{"CROSSSLOT", "the cluster refuses keys of different slots",
		"report this: all keys of one call should share a hash tag"},
	{"LOADING", "the server is loading its data", "try again when it has started"},
	{"READONLY", "the server is a replica", "connect to the primary, or use redis+sentinel:// or redis+cluster://"},
	{"MASTERDOWN", "the replica has lost its primary", "try again after the fail-over"},
	{"NOREPLICAS", "the server has too few replicas to accept writes",
		"look at min-replicas-to-write and at the replicas"},
	{"MISCONF", "the server cannot save to its disk", "look at the disk and the log of the server"},
	{"BUSY", "the server is busy with a script", "try again; look for other programs' slow scripts"},
	{"NOAUTH", "the server wants a password", "put user and password into the URL"},
	{"WRONGPASS", "user name or password are wrong", "look at the URL, and at ACL LIST on the server"},
	{"NOPERM", "the user may not do this", "give it the permissions that docs/redis.md lists"},
	{"WRONGTYPE", "a key of ours has another type",
		"something else writes keys with this prefix; use another Options.Prefix"},
	{"ERR max number of clients", "the server has too many clients", "raise maxclients, or use smaller pools"},
}

// Classify turns an error of the client library into one of ours: not applied when the server said so or was not
// reached, unknown when the connection broke or the time was up. Its text never contains a URL.
func Classify(err error) error {
	if err == nil {
		return nil
	}
	var ours *driver.Error
	if errors.As(err, &ours) {
		return err
	}
	for _, r := range refusals {
		if says(err, r.prefix) {
			kind := driver.ErrNotApplied
			if r.prefix == "OOM" {
				kind = driver.ErrFull
			}
			return driver.NewError(kind, r.text, r.hint, err)
		}
	}
	var dial *net.OpError
	switch {
	case errors.Is(err, goredis.ErrClosed):
		return driver.NewError(driver.ErrClosed, "the connection is closed", "open the driver again", err)
	case errors.As(err, &dial) && dial.Op == "dial", errors.Is(err, goredis.ErrPoolTimeout),
		errors.Is(err, goredis.ErrPoolExhausted),
		strings.Contains(err.Error(), "all sentinels specified in configuration are unreachable"):
		return driver.NewError(driver.ErrNotApplied, "the server was not reached",
			"look whether it runs and the address is right", err)
	case IsReply(err):
		return driver.NewError(driver.ErrNotApplied, "the server refused the command", "its answer says why", err)
	}
	return driver.NewError(driver.ErrUnknown, "the server did not answer",
		"it may have been applied; try again with the same id", err)
}

// says reports whether a reply is of this kind. Before Redis 7.0 that of a script contains the one that ended it, of
// the server itself with a minus sign.
func says(err error, prefix string) bool {
	if goredis.HasErrorPrefix(err, prefix) {
		return true
	}
	text := err.Error()
	return strings.Contains(text, ": -"+prefix+" ") || strings.Contains(text, "Error running script") &&
		strings.Contains(text, ": "+prefix+" ")
}

// IsWrongType reports whether a command, or one of a script, met a key of another type.
func IsWrongType(err error) bool { return err != nil && IsReply(err) && says(err, "WRONGTYPE") }

// errLoading says that a server answers, and does not know its data yet.
var errLoading = errors.New("loading")

// isLoading reports whether a server was asked too early after its start.
func isLoading(err error) bool {
	return err != nil && (errors.Is(err, errLoading) || says(err, "LOADING"))
}

// IsReply reports whether the server answered with an error. Scripts that fail half-way are a bug of ours.
func IsReply(err error) bool {
	var reply goredis.Error
	return errors.As(err, &reply) && !errors.Is(err, goredis.Nil)
}

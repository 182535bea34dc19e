package open

import (
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// Finding is one thing that an operator should know, how bad it is, and what to do about it.
type Finding = driver.Finding

// Diagnose says what an operator should know of a broker URL itself: that it sends a password over a network without
// TLS. It shows nothing of the URL. URL logs it, too. A URL with insecure=true says that this is meant.
func Diagnose(rawURL string) []Finding {
	scheme, err := schemeOf(rawURL)
	if err != nil {
		return nil
	}
	rest, p, err := split(scheme, rawURL)
	if err != nil {
		return nil
	}
	if meant, _ := strconv.ParseBool(p.values.Get("insecure")); meant || !inClear(scheme, rest, p.values) {
		return nil
	}
	return []Finding{{
		Severity: driver.SeverityWarning, Subject: "password",
		Text: "a password goes to another host without TLS: who can listen on the way can use it",
		Hint: "use " + encrypted(scheme) + "://, or say insecure=true in the URL if the network is trusted",
	}}
}

// inClear reports whether a password leaves this machine unencrypted. A token for a server counts as one.
func inClear(scheme, rest string, values url.Values) bool {
	base, _, _ := strings.Cut(scheme, "+")
	if base == "ferry" {
		host, _, _ := strings.Cut(rest, "/")
		return (values.Get("token_file") != "" || os.Getenv(tokenVariable) != "") && !isLoopback(host)
	}
	if base != "redis" && base != "redisstream" && base != "kafka" {
		return false
	}
	authority, _, _ := strings.Cut(rest, "/")
	who, hosts := "", authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		who, hosts = authority[:at], authority[at+1:]
	}
	_, password, _ := strings.Cut(who, ":")
	if password == "" && values.Get("sentinel_password") == "" {
		return false
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if !isLoopback(host) {
			return true
		}
	}
	return false
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "" || strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// encrypted is the scheme of the same broker over TLS.
func encrypted(scheme string) string {
	base, kind, found := strings.Cut(scheme, "+")
	if !found {
		return base + "s"
	}
	return base + "s+" + kind
}

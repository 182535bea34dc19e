package redisconn

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// Connect makes a client for a URL. No connection is made yet. Errors never quote the URL: it may contain a password.
func Connect(rawURL string) (goredis.UniversalClient, error) {
	a, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	o := a.options
	switch a.kind {
	case "sentinel":
		return goredis.NewFailoverClient(o.Failover()), nil
	case "cluster":
		return goredis.NewClusterClient(o.Cluster()), nil
	}
	return goredis.NewClient(o.Simple()), nil
}

// address is a URL taken apart.
type address struct {
	kind    string // "", "sentinel" or "cluster"
	options *goredis.UniversalOptions
	tls     *tls.Config
	cert    [2]string // files of the client's certificate and key
}

func badURL(text string) error {
	return driver.NewError(driver.ErrInvalid, text,
		"use redis://user:password@host:6379/0, rediss:// for TLS, redis+sentinel://h1,h2/master or redis+cluster://h1,h2",
		nil)
}

// parseURL reads a URL. What it does not know is an error: a misspelt parameter would be found out when it is needed.
func parseURL(rawURL string) (*address, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok {
		return nil, badURL("the URL has no scheme")
	}
	// Scripts are never sent twice by the client itself (see Script). The rest can be, but its callers rather know soon.
	a := &address{options: &goredis.UniversalOptions{ContextTimeoutEnabled: true, MaxRetries: -1}}
	base, kind, _ := strings.Cut(scheme, "+")
	if base != "redis" && base != "rediss" || kind != "" && kind != "sentinel" && kind != "cluster" {
		return nil, badURL("the scheme of the URL is not known")
	}
	a.kind = kind
	if base == "rediss" {
		a.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	userinfo, hosts := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		userinfo, hosts = authority[:i+1], authority[i+1:]
	}
	u, err := url.Parse(base + "://" + userinfo + "host" + tail)
	if err != nil || u.Fragment != "" {
		return nil, badURL("the URL is malformed")
	}
	if err := a.setHosts(hosts); err != nil {
		return nil, err
	}
	if u.User != nil {
		a.options.Username = u.User.Username()
		a.options.Password, _ = u.User.Password()
	}
	if err := a.setPath(strings.Trim(u.Path, "/")); err != nil {
		return nil, err
	}
	return a, a.setParameters(u.RawQuery)
}

func (a *address) setHosts(hosts string) error {
	port := "6379"
	if a.kind == "sentinel" {
		port = "26379"
	}
	for h := range strings.SplitSeq(hosts, ",") {
		if h == "" {
			h = "localhost"
		}
		if _, _, err := net.SplitHostPort(h); err != nil {
			h = net.JoinHostPort(strings.Trim(h, "[]"), port)
		}
		if _, p, err := net.SplitHostPort(h); err != nil {
			return badURL("a host of the URL is malformed")
		} else if _, err := strconv.ParseUint(p, 10, 16); err != nil {
			return badURL("a port of the URL is not a number")
		}
		a.options.Addrs = append(a.options.Addrs, h)
	}
	if a.kind == "" && len(a.options.Addrs) > 1 {
		return badURL("a single server has one host")
	}
	return nil
}

// setPath reads the database, or for Sentinel the name of the primary and the database.
func (a *address) setPath(path string) error {
	if a.kind == "sentinel" {
		var name string
		name, path, _ = strings.Cut(path, "/")
		if name == "" {
			return badURL("the URL names no primary")
		}
		a.options.MasterName = name
	}
	if path == "" {
		return nil
	}
	db, err := strconv.Atoi(path)
	if err != nil || db < 0 || a.kind == "cluster" && db != 0 {
		return badURL("the path of the URL must be the number of a database, and a cluster has only 0")
	}
	a.options.DB = db
	return nil
}

func (a *address) setParameters(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return badURL("the parameters of the URL are malformed")
	}
	for name, vs := range values {
		if len(vs) > 1 {
			return badURL(fmt.Sprintf("parameter %.32q is given twice", name))
		}
		if err := a.setParameter(name, vs[0]); err != nil {
			return err
		}
	}
	if a.cert != [2]string{} {
		pair, err := tls.LoadX509KeyPair(a.cert[0], a.cert[1])
		if err != nil {
			return driver.NewError(driver.ErrInvalid, "the client certificate cannot be read",
				"look at the parameters cert and key", err)
		}
		a.tls.Certificates = []tls.Certificate{pair}
	}
	a.options.TLSConfig = a.tls
	return nil
}

func (a *address) setParameter(name, value string) error {
	switch name {
	case "pool":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return badURL("parameter pool must be a number of connections")
		}
		a.options.PoolSize = n
	case "timeout":
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return badURL("parameter timeout must be a duration such as 3s")
		}
		a.options.ReadTimeout, a.options.WriteTimeout, a.options.DialTimeout = d, d, d
	case "sentinel_user":
		a.options.SentinelUsername = value
	case "sentinel_password":
		a.options.SentinelPassword = value
	case "protocol":
		if value != "2" && value != "3" {
			return badURL("parameter protocol must be 2 or 3")
		}
		a.options.Protocol = int(value[0] - '0')
	default:
		return a.setTLS(name, value)
	}
	return nil
}

func (a *address) setTLS(name, value string) error {
	if a.tls == nil && (name == "ca" || name == "cert" || name == "key" || name == "server_name") {
		return badURL(fmt.Sprintf("parameter %s needs rediss://", name))
	}
	switch name {
	case "ca":
		pem, err := os.ReadFile(value)
		if err != nil {
			return driver.NewError(driver.ErrInvalid, "the certificates of the authority cannot be read",
				"look at the parameter ca", err)
		}
		a.tls.RootCAs = x509.NewCertPool()
		if !a.tls.RootCAs.AppendCertsFromPEM(pem) {
			return badURL("the file of parameter ca contains no certificate")
		}
	case "cert":
		a.cert[0] = value
	case "key":
		a.cert[1] = value
	case "server_name":
		a.tls.ServerName = value
	default:
		return badURL("the URL has a parameter that is not known; known are pool, timeout, protocol, sentinel_user, " +
			"sentinel_password, ca, cert, key, server_name")
	}
	return nil
}

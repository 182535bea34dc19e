package open

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// parameters are what stands behind the question mark of a URL. Each is taken by the driver that knows it, and what is
// left over is an error: a misspelt limit that is ignored would be found out when it is needed.
type parameters struct {
	scheme string
	values url.Values
	bad    []string
}

// split takes a URL apart. Its errors quote nothing of it: anything may be a secret.
func split(scheme, rawURL string) (rest string, p *parameters, err error) {
	rest = rawURL[strings.Index(rawURL, "://")+len("://"):]
	rest, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil || strings.Contains(rest+query, "#") {
		return "", nil, driver.NewError(driver.ErrInvalid, "the broker URL is malformed", schemes, nil)
	}
	return rest, &parameters{scheme: scheme, values: values}, nil
}

// text takes a parameter; empty when it is not given.
func (p *parameters) text(name string) string {
	vs := p.values[name]
	delete(p.values, name)
	if len(vs) > 1 {
		p.bad = append(p.bad, fmt.Sprintf("parameter %q is given more than once", name))
	}
	if len(vs) == 0 {
		return ""
	}
	return vs[0]
}

// number takes a parameter that is a whole number of at least 1; zero when it is not given.
func (p *parameters) number(name string) int64 {
	s := p.text(name)
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 {
		p.bad = append(p.bad, fmt.Sprintf("parameter %q must be a whole number of at least 1", name))
	}
	return n
}

// duration takes a parameter such as 500ms; zero when it is not given.
func (p *parameters) duration(name string) time.Duration {
	s := p.text(name)
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		p.bad = append(p.bad, fmt.Sprintf("parameter %q must be a duration, such as 500ms", name))
	}
	return d
}

// flag takes a parameter that is true or false; false when it is not given.
func (p *parameters) flag(name string) bool {
	s := p.text(name)
	b, err := strconv.ParseBool(s)
	if s != "" && err != nil {
		p.bad = append(p.bad, fmt.Sprintf("parameter %q must be true or false", name))
	}
	return b
}

// connection takes the parameters that describe the connection to Redis, for its driver to read.
func (p *parameters) connection() url.Values {
	taken := url.Values{}
	for _, o := range redisConnection {
		if vs, ok := p.values[o.name]; ok {
			taken[o.name] = vs
			delete(p.values, o.name)
		}
	}
	return taken
}

// done says what is wrong: a value, or a parameter that nobody took.
func (p *parameters) done() error {
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		p.bad = append(p.bad, "it has no "+shown(name))
	}
	if len(p.bad) == 0 {
		return nil
	}
	return driver.NewError(driver.ErrInvalid, p.scheme+":// URL: "+strings.Join(p.bad, "; "),
		p.scheme+":// takes the parameters "+optionsOf(p.scheme), nil)
}

// shown names a parameter if its name looks like one.
func shown(name string) string {
	if name == "" || len(name) > 32 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return "such parameter"
	}
	return fmt.Sprintf("parameter %q", name)
}

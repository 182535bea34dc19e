package open

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

// memoryOptions reads memory://?max_messages=N&max_body=N. Anything else in the URL is an error: a misspelt limit
// that is ignored would be found out when memory runs out.
func memoryOptions(rawURL string) (memory.Options, error) {
	var o memory.Options
	u, err := url.Parse(rawURL)
	switch {
	case err != nil: // its text quotes the URL, secrets included
		return o, badMemory("the broker URL is malformed")
	case u.User != nil:
		return o, badMemory("memory:// takes no user and no password")
	case u.Host != "" || u.Path != "" || u.Opaque != "":
		return o, badMemory("memory:// takes no host and no path")
	case u.Fragment != "":
		return o, badMemory("memory:// takes no fragment")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return o, badMemory("the parameters of the broker URL are malformed")
	}
	for name, values := range query {
		if err := setMemory(&o, name, values); err != nil {
			return o, err
		}
	}
	return o, nil
}

func setMemory(o *memory.Options, name string, values []string) error {
	var set func(n int)
	switch name {
	case "max_messages":
		set = func(n int) { o.MaxMessages = int64(n) }
	case "max_body":
		set = func(n int) { o.MaxBody = n }
	default:
		return badMemory("memory:// has no " + parameter(name))
	}
	n, err := strconv.Atoi(values[0])
	if err != nil || n < 1 || len(values) > 1 {
		return badMemory(parameter(name) + " of memory:// must be given once, as a whole number of at least 1")
	}
	set(n)
	return nil
}

// parameter names a parameter if its name looks like one.
func parameter(name string) string {
	if name == "" || len(name) > 32 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return "such parameter"
	}
	return fmt.Sprintf("parameter %q", name)
}

func badMemory(text string) error {
	return driver.NewError(driver.ErrInvalid, text, schemes, nil)
}

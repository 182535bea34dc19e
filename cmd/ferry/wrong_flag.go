package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// wrongFlag says what is wrong with the flags of a command. Behind a word that is no command no flag is known, and it
// is the word that is wrong.
func wrongFlag(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 {
		return helpOrUnknown(c, words)
	}
	var value *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &value):
		return wrongValue(value.GetFlag(), value.GetValue())
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return usage("unknown flag: -"+unknown.GetSpecifiedShortnames(),
			"an argument that begins with - stands behind --; "+seeHelp(c))
	}
	return usage(err.Error(), seeHelp(c))
}

// wrongValue says what a flag takes.
func wrongValue(f *pflag.Flag, value string) error {
	kind, hint := map[string]string{
		"int": "a whole number", "int64": "a whole number", "float64": "a number", "duration": "a duration",
		"bool": "true or false",
	}[f.Value.Type()], "it takes: "+f.Usage
	switch {
	case kind == "":
		kind = "what it takes"
	case f.Value.Type() == "duration":
		hint = "write it as 10s, 5m or 1h30m"
	}
	return usage(fmt.Sprintf("--%s %q is not %s", f.Name, printable(value), kind), hint)
}

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// asUsed checks arguments against the words behind the name in c.Use: TOPIC is required, [TOPIC] is not, and MESSAGE...
// takes any number. The names of topics and groups are checked as well, before anything is opened.
func asUsed(c *cobra.Command, args []string) error {
	words := strings.Fields(c.Use)[1:]
	for i, word := range words {
		name, optional := strings.CutPrefix(strings.TrimSuffix(word, "]"), "[")
		name, many := strings.CutSuffix(name, "...")
		switch {
		case i < len(args):
		case optional:
			return nil
		default:
			return usage(fmt.Sprintf("%s: %s is missing", c.CommandPath(), name), "use it as: "+c.UseLine())
		}
		values := args[i : i+1]
		if many {
			values = args[i:]
		}
		if err := checkNames(name, values); err != nil || many {
			return err
		}
	}
	if len(args) > len(words) {
		return usage(fmt.Sprintf("%s takes no argument %q", c.CommandPath(), printable(args[len(words)])), seeHelp(c))
	}
	return nil
}

// checkNames says what is wrong with arguments that name a topic or a group.
func checkNames(kind string, values []string) error {
	if kind != "TOPIC" && kind != "GROUP" {
		return nil
	}
	for _, v := range values {
		if err := driver.CheckName(strings.ToLower(kind), v); err != nil {
			return err
		}
	}
	return nil
}

// checkGroup says what is wrong with --group.
func checkGroup(group string) error {
	if group == "" {
		return nil
	}
	return driver.CheckName("group", group)
}

// oneOf says what is wrong with a flag that takes one of a few words.
func oneOf(flag, value string, words ...string) error {
	for _, w := range words {
		if value == w {
			return nil
		}
	}
	return usage(fmt.Sprintf("--%s %q does not exist", flag, printable(value)),
		"use "+strings.Join(words[:len(words)-1], ", ")+" or "+words[len(words)-1])
}

// hinted replaces the hint of an error of ours, where the driver's speaks to programmers.
func hinted(err error, hint string) error {
	var ours *ferry.Error
	if !errors.As(err, &ours) {
		return err
	}
	return driver.NewError(ours.Kind, ours.Text, hint, ours.Cause)
}

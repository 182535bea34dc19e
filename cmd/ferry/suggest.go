package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// otherWords are what people call commands elsewhere. Whoever writes one is told ours.
var otherWords = map[string][]string{
	"ls":      {"list", "blocked"},
	"show":    {"get", "describe", "inspect", "info", "view", "status"},
	"rm":      {"delete", "remove", "del", "drop"},
	"create":  {"add", "new", "make", "put"},
	"put":     {"create", "add", "new", "make", "set", "alter", "edit", "update"},
	"alter":   {"set", "change", "edit", "update", "config"},
	"edit":    {"patch", "mend", "change", "update"},
	"retry":   {"requeue", "redrive"},
	"requeue": {"mend", "patch", "edit", "retry", "replay"},
	"purge":   {"clear", "empty"},
	"quiet":   {"pause", "stop"},
	"trigger": {"run", "fire"},
	"pub":     {"publish", "send", "produce"},
	"sub":     {"subscribe", "receive", "consume"},
}

// suggests makes the commands below c known by their other words.
func suggests(c *cobra.Command) {
	for _, sub := range c.Commands() {
		sub.SuggestFor = otherWords[sub.Name()]
		suggests(sub)
	}
}

// meant returns the commands below c that a word may stand for: those it is another word for, or else those that are
// written alike.
func meant(c *cobra.Command, word string) []string {
	if word == "" {
		return nil
	}
	var same []string
	for _, sub := range c.Commands() {
		if slices.Contains(sub.SuggestFor, strings.ToLower(word)) {
			same = append(same, sub.Name())
		}
	}
	if len(same) > 0 {
		return same
	}
	return slices.DeleteFunc(c.SuggestionsFor(word), func(name string) bool {
		return len(name) == 2 && name[0] != word[0] // any two letters are two away from "ls"
	})
}

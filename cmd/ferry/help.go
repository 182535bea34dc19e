package main

import "github.com/spf13/cobra"

// ownCommands makes the commands that cobra adds by itself, help and completion, refuse what does not exist.
func ownCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help := below(root, "help")
	help.Use, help.Run, help.RunE = "help [COMMAND...]", nil, func(_ *cobra.Command,
		args []string) error {
		return helpOn(root, args)
	}

	root.InitDefaultCompletionCmd()
	completion := below(root, "completion")
	completion.Args, completion.RunE, completion.SuggestionsMinimumDistance = cobra.ArbitraryArgs, helpOrUnknown, 2
	for _, shell := range completion.Commands() {
		shell.Args = asUsed
	}
}

// helpOn prints the help of the command that the words name.
func helpOn(c *cobra.Command, words []string) error {
	for i, word := range words {
		sub := below(c, word)
		if sub == nil {
			return helpOrUnknown(c, words[i:])
		}
		c = sub
	}
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	return c.Help()
}

// below returns the command of that name right below c, or nil.
func below(c *cobra.Command, name string) *cobra.Command {
	for _, sub := range c.Commands() {
		if sub.Name() == name || sub.HasAlias(name) {
			return sub
		}
	}
	return nil
}

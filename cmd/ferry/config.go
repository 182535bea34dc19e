package main

import (
	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/server/config"
)

func newConfig(p process) *cobra.Command {
	return newNoun("config", "Check the configuration of a server", "  ferry config check ferry.yaml",
		newConfigCheck(p))
}

func newConfigCheck(p process) *cobra.Command {
	return &cobra.Command{Use: "check FILE", Short: "Say whether a configuration is good, and if not, where",
		Long:    `Reads a configuration as 'ferry serve' does, and says in which line it is wrong. It opens nothing.`,
		Example: "  ferry config check ferry.yaml", Args: asUsed,
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := config.Read(args[0]); err != nil {
				return err
			}
			return p.sayf("%s is good", args[0])
		}}
}

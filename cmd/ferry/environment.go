package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/internal/privatefile"
)

// setFromEnvironment gives every flag that is not on the command line the value of its FERRY_* variable.
func setFromEnvironment(flags *pflag.FlagSet, env func(string) (string, bool)) error {
	var problem error
	flags.VisitAll(func(f *pflag.Flag) {
		if problem != nil || f.Changed || f.Name == "help" || f.Annotations[onCommandLine] != nil {
			return
		}
		name := variableOf(f.Name)
		value, found, err := variable(name, env)
		switch {
		case err != nil:
			problem = err
		case found && flags.Set(f.Name, value) != nil: // its text repeats the value, which may be secret
			problem = usage(fmt.Sprintf("the value of %s does not fit --%s", name, f.Name), "it takes: "+f.Usage)
		}
	})
	return problem
}

// onCommandLine marks flags that no variable sets: a forgotten FERRY_ALL=1 would be a disaster.
const onCommandLine = "on the command line only"

func onlyOnCommandLine(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		// fails for a flag that does not exist, which help would show
		_ = flags.SetAnnotation(name, onCommandLine, []string{})
	}
}

// variableOf returns the variable of a flag: FERRY_NO_DEMO for no-demo.
func variableOf(flag string) string {
	return "FERRY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// variable returns the value of a variable, or the contents of the file that NAME_FILE names. Empty means not set.
func variable(name string, env func(string) (string, bool)) (string, bool, error) {
	value, _ := env(name)
	path, _ := env(name + "_FILE")
	switch {
	case value != "" && path != "":
		return "", false, usage(name+" and "+name+"_FILE are both set", "unset one of them")
	case path == "":
		return value, value != "", nil
	}
	content, err := privatefile.ReadSecret(path)
	var shared *privatefile.Shared
	switch {
	case errors.As(err, &shared):
		return "", false, usage(fmt.Sprintf("the file that %s_FILE names is not private: %s", name, shared.Text), shared.Hint)
	case err != nil:
		return "", false, usage(fmt.Sprintf("the file that %s_FILE names cannot be read: %v", name, err),
			"check the path and its permissions")
	}
	return strings.TrimSpace(content), true, nil
}

package rig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/driver/memory"
)

type opener func(context.Context, Options) (stage, error)

// brokers are those that can be tortured by name. A broker with servers of its own starts them here, and adds its
// actions ("restart server", "failover") to those of its stage.
func brokers() map[string]opener {
	return map[string]opener{
		"memory": func(_ context.Context, o Options) (stage, error) {
			return newLocalStage(memory.New(memory.Options{}), o), nil
		},
	}
}

// Brokers returns the names of the brokers that can be tortured.
func Brokers() []string { return slices.Sorted(maps.Keys(brokers())) }

// Lookup returns how to open a broker by its name, or by the URL of one that runs already.
func Lookup(name string) (func(context.Context, Options) (stage, error), error) {
	if open, ok := brokers()[name]; ok {
		return open, nil
	}
	if strings.Contains(name, "://") && !strings.HasPrefix(name, "memory:") {
		return openProcesses, nil
	}
	return nil, fmt.Errorf("no broker %q; there are %s, or the URL of a running one", name, strings.Join(Brokers(), ", "))
}

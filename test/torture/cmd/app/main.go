// Command app is the one process of a torture run that owns its broker: producers, consumers and the store. The harness
// starts it.
package main

import (
	"fmt"
	"os"

	"github.com/ferrymq/ferry/test/torture/child"
	"github.com/ferrymq/ferry/test/torture/workload"
)

func main() {
	if err := child.Main(workload.RoleApp, os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "app:", err)
		os.Exit(1)
	}
}

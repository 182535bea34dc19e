// Command consumer is a consumer process of a torture run. The harness starts it.
package main

import (
	"fmt"
	"os"

	"github.com/ferrymq/ferry/test/torture/child"
	"github.com/ferrymq/ferry/test/torture/workload"
)

func main() {
	if err := child.Main(workload.RoleConsumer, os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}

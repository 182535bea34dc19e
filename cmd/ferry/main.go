// Command ferry runs, measures and looks into Ferry brokers. Start with: ferry dev
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), process{args: os.Args[1:], env: os.LookupEnv, out: os.Stdout, err: os.Stderr}))
}

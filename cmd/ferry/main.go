// Command ferry runs, measures and looks into Ferry brokers. Start with: ferry dev
package main

import (
	"context"
	"os"

	"github.com/ferrymq/ferry/open"
)

func main() {
	os.Exit(run(context.Background(), process{
		args: os.Args[1:], env: os.LookupEnv, in: os.Stdin, out: os.Stdout, err: os.Stderr, open: open.With,
	}))
}

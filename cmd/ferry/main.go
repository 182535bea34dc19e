// Command ferry runs, measures and looks into Ferry brokers. Start with: ferry dev
package main

import (
	"context"
	"os"

	"github.com/redis/go-redis/v9/logging"

	"github.com/ferrymq/ferry/open"
)

func main() {
	logging.Disable() // the Redis client would write to stderr by itself; what fails we say ourselves
	os.Exit(run(context.Background(), process{
		args: os.Args[1:], env: os.LookupEnv, in: os.Stdin, out: os.Stdout, err: os.Stderr, open: open.URL,
	}))
}

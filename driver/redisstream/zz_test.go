package redisstream_test

import (
	"context"
	"fmt"
	"testing"
)

func BenchmarkZZ(b *testing.B) {
	l := newLoad(b)
	l.driver(0)
	t, _ := l.client.Info(context.Background(), "commandstats").Result()
	fmt.Println(t)
}

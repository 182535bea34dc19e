// Command wecom goes the whole way of a customer's message against a vendor inside the process: the vendor calls back,
// the message is pulled and published, handled behind the guards, and answered.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"sync"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
	"github.com/ferrymq/ferry/worker"
)

func main() {
	ctx, done := context.WithCancel(context.Background())
	defer done()
	url := cmp.Or(os.Getenv("FERRY_BROKER"), "memory://")
	broker, err := open.URL(ctx, url)
	check(err)
	defer broker.Close(context.Background())
	store, err := open.Guards(ctx, cmp.Or(os.Getenv("FERRY_STORE"), url)) // of Kafka: a redis:// URL in FERRY_STORE
	check(err)
	defer func() { _ = store.Close(context.Background()) }()

	vendor := wecomtest.Start(wecomtest.Options{}) // in real life: WeCom, and wecom.FromEnvironment
	defer vendor.Close()
	p, err := wecom.New(broker, vendor.Config(), wecom.Options{})
	check(err)
	defer p.Close()
	callbacks := httptest.NewServer(p.Callback())
	defer callbacks.Close()

	handled := make(chan string, 10)
	w := worker.New(broker, worker.Options{})
	layers, err := p.Protection(store, nil)
	check(err)
	p.Handle(w, layers, wecom.Kinds{wecom.KindText: func(ctx context.Context, m *ferry.Msg[wecom.Message]) error {
		defer func() { handled <- m.Value.User + ": " + m.Value.Text.Content }()
		return p.Client().ReplyTo(&m.Value).Text(ctx, "收到："+m.Value.Text.Content)
	}}.Handle)

	var running sync.WaitGroup
	running.Go(func() { check(p.Run(ctx)) })
	running.Go(func() { check(w.Run(ctx)) })

	check(vendor.Verify(ctx, callbacks.URL))
	fmt.Println("the callback URL is verified")
	talk(ctx, vendor, callbacks.URL, handled)
	fmt.Println("replies:")
	for _, reply := range vendor.Sent() {
		fmt.Printf("  to %s: %s\n", reply.User, reply.Text)
	}
	done()
	running.Wait()
}

// talk has a customer write, and the vendor call back: once, once more because it is impatient, and once with a forged
// signature.
func talk(ctx context.Context, vendor *wecomtest.Server, url string, handled <-chan string) {
	vendor.Say("kf-shop", "ann", "你好")
	vendor.Say("kf-shop", "ann", "我的快递到哪了？")
	callback := vendor.Callback("kf-shop")
	forged := callback
	forged.Signature = "0000000000000000000000000000000000000000"
	for _, c := range []wecomtest.Callback{callback, callback, forged} {
		status, err := c.Send(ctx, url)
		check(err)
		fmt.Println("a callback is answered with", status)
	}
	for range 2 {
		fmt.Println(<-handled)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Command leader lets two instances stand for one duty: one leads at a time, the other takes over at once when it ends,
// and what a late leader writes is refused by its epoch.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/open"
)

const duty = "reports"

func main() {
	ctx := context.Background()
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(ctx)

	var all sync.WaitGroup
	ann, endAnn := stand(ctx, &all, broker, "ann")
	late := <-ann
	ben, endBen := stand(ctx, &all, broker, "ben") // waits, and asks nobody meanwhile
	endAnn()                                       // an orderly end: ben need not wait for the lease to run out
	<-ben
	err = write(ctx, broker, late, "ann's report, written too late")
	fmt.Println("ann writes late, refused:", errors.Is(err, ferry.ErrLeaseLost))
	endBen()
	all.Wait()
}

// stand lets one instance stand for the duty until it is told to end. The channel tells when it leads.
func stand(ctx context.Context, all *sync.WaitGroup, broker *ferry.Broker, name string) (leads <-chan *cluster.Lock,
	end func()) {
	ctx, end = context.WithCancel(ctx)
	led := make(chan *cluster.Lock, 1)
	all.Go(func() {
		err := cluster.Lead(ctx, broker, duty, func(ctx context.Context, l *cluster.Lock) error {
			fmt.Println(name, "leads")
			if err := write(ctx, broker, l, name+"'s report"); err != nil {
				return err
			}
			fmt.Println(name, "writes a report")
			led <- l
			<-ctx.Done() // the lead is lost, or the instance stops
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
	})
	return led, end
}

// write keeps the state of the duty under the lease of its leader.
func write(ctx context.Context, broker *ferry.Broker, l *cluster.Lock, report string) error {
	w := driver.Write{Name: "report", Data: []byte(report), Fence: l.Fence()}
	return broker.Driver().KV().Apply(ctx, cluster.LeadBucket(duty), driver.KVOptions{}, w)[0].Err
}

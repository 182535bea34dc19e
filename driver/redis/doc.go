// Package redis is the driver for Redis 6.2 and later and Valkey, on a single node, with Sentinel, and as a Cluster.
//
// Every change of state is one Lua script; scripts are constants, declare all their keys, use the server's clock only,
// and can be repeated without harm, so that neither a lost reply nor a retry of the client library does any. All keys
// of a topic shard share one hash tag. docs/redis.md has the layout with a picture.
//
// Where things are:
//
//	lua/            one file for each operation, and the fragments they share (script.go puts them together)
//	keys.go         the keys of a topic shard and of a group
//	topic.go        what this process knows about topics: shards and groups
//	publish.go      Publish
//	subscription.go Subscribe and Close, receive.go, settle.go, extend.go
//	wake.go         wake-ups by pub/sub, scheduler.go: what is due, members.go: who is alive
//	inspect.go, browse.go, manage.go, move.go, purge.go, audit.go
package redis

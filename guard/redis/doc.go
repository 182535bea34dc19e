// Package redis keeps the state of guards in Redis, so that limits, slots, marks and blocks hold for all processes
// together: ten processes with one limit admit exactly what the limit says.
//
// Every decision is one script, and concurrent ones travel in one call. Only the server's clock counts. All keys of a
// store share one hash tag, so that one decision may concern several limits, also on a cluster; to spread the load
// over its nodes, use stores with different prefixes for limits that need not be decided together.
package redis

// Package cluster is the connection to the brokers: names of topics, clients, what is stored, read and committed there,
// and their clock. It knows nothing of messages.
package cluster

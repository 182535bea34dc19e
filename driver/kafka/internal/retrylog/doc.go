// Package retrylog is the keys of a retry log: the topic _ferry.retry.* beside a topic where the unfinished of one
// group wait.
package retrylog

package redis

import "sync"

// word is an argument of a script, in memory that it shares with others of the same call: a pointer to it costs no allocation.
type word []byte

// MarshalBinary is asked by the client library, which copies what it gets.
func (w *word) MarshalBinary() ([]byte, error) { return *w, nil }

// appendWords adds words to the arguments of a script.
func appendWords(args []any, words []word) []any {
	for i := range words {
		args = append(args, &words[i])
	}
	return args
}

// arenas are memory for the words of calls, used again and again.
type arenas struct{ pool sync.Pool }

// arenaMost is the largest memory that is kept.
const arenaMost = 1 << 20

func (a *arenas) take() []byte {
	if b, ok := a.pool.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return nil
}

// giveBack keeps memory for others. No call uses it any more.
func (a *arenas) giveBack(b []byte) {
	if cap(b) > 0 && cap(b) <= arenaMost {
		a.pool.Put(&b)
	}
}
